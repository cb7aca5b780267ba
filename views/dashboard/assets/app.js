// The view of one app. Each part is made again only if what it shows has changed,
// so that what somebody is reading or copying stays.
import { $, h, ago, dotted, exported, images, left, live, note, paths, phaseOf, person, short, span, commitLink, keys,
  ask, me, store } from './common.js';
import { amount, overTime, measured, weighed } from './charts.js';

const name = document.body.dataset.app;
const path = '/api/v1/apps/' + encodeURIComponent(name);
let app = null, links = {}, who = { may: [] }, told = '', asked = '';
const made = {};

function part(id, data, build) {
  const text = JSON.stringify(data);
  if (made[id] === text) return;
  made[id] = text;
  const focus = document.activeElement
    && $(id).contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const open = new Map([...$(id).querySelectorAll('details')].map((d) => [d.dataset.key, d.open]));
  $(id).replaceChildren(...[build()].flat(9).filter(Boolean));
  for (const d of $(id).querySelectorAll('details')) if (open.has(d.dataset.key)) d.open = open.get(d.dataset.key);
  if (focus) { const el = [...$(id).querySelectorAll('[data-key]')].find((e) => e.dataset.key === focus);
    if (el) el.focus(); }
}

// later asks the server for its content each time it is opened. The element is made once, so that it stays open.
const kept = {};
function later(address, title, build) {
  if (exported) return title;
  const body = (...children) => d.lastChild.replaceChildren(...children.flat(9).filter(Boolean));
  const d = kept[address] ||= h('details', { 'data-key': address, ontoggle: async () => {
    if (!d.open) return;
    body('reading …');
    try { body(build(await ask('GET', address))); } catch (err) { body(h('p', { class: 'error' }, err.message)); }
  } }, h('summary', { 'data-key': 'open ' + address }), h('div', { 'aria-live': 'polite' }));
  d.firstChild.replaceChildren(...[title].flat(9));
  return d;
}

function copyButton(text) {
  const button = h('button', { type: 'button', 'data-key': 'copy ' + text, 'aria-label': 'Copy: ' + text,
    onclick: async () => {
    try { await navigator.clipboard.writeText(text); } catch {
      const area = h('textarea', { 'aria-hidden': 'true' }, text);
      document.body.append(area); area.select(); document.execCommand('copy'); area.remove(); button.focus();
    }
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 1500);
  } }, 'Copy');
  return button;
}

// versionOf shows a version: images, subject, author and age. Commit and hash are last.
const versionOf = (r) => [images(app.shortImages[r.hash || '']), ' ', dotted(r.subject, person(r.author),
  r.fast && 'verified before', r.since && ago(r.since)), ' ', h('span', { class: 'dim id' },
  commitLink(links, r.commit), ' ', r.hash && h('code', {}, r.hash))];
const release = (title, r) => r && [h('dt', {}, title), h('dd', {}, versionOf(r))];

function title() {
  const held = app.held && ({ ReleasesClosed: 'waiting', HookRuns: 'running hooks', WaitsForCohort: 'waiting', Stage: 'waiting' }[app.held.reason] || 'held');
  return [h('div', { class: 'titleline' }, h('h1', {}, app.app), h('span', {}, phaseOf(app.phase, held)),
    h('span', { class: 'dim mono' }, app.path)),
    app.reason && h('p', { class: 'dim' }, app.reason),
    app.held && h('div', { class: 'card alert' }, h('h2', {}, held === 'held' ? 'It is held' : 'It waits'),
      h('p', {}, paths(app.held.message)), app.held.commit && h('p', { class: 'dim' }, 'at commit ',
      commitLink(links, app.held.commit), app.held.author && ' by ' + person(app.held.author))),
    app.rejected && h('div', { class: 'card alert' }, h('h2', {}, 'What Git asks for was rejected'),
      h('p', {}, app.rejected.reason), h('p', {}, versionOf({ ...app.rejected, since: app.rejected.at }))),
    h('dl', { class: 'facts' }, release('Release', app.release), release('Stable', app.stable),
      !app.release && !app.stable && app.source && release('Applied',
        { ...app.source, since: app.source.when }),
      app.waiting && [h('dt', {}, 'Waits for'), h('dd', { id: 'waits' }, app.waiting,
        app.due ? [', ', left(app.due)] : '')],
      (app.warnings || []).map((w) => [h('dt', {}, 'Warning'), h('dd', {}, w)]),
      app.note && [h('dt', {}, 'Note'), h('dd', {}, app.note)])];
}

const danger = { abort: true, undo: true }; // the ways back
const endsWatch = (verb) => verb === 'abort' && !!app.watch; // no way back
const means = {
  promote: 'It lets the release pass the step that it waits at.',
  hold: 'It keeps the release where it is until the hold is ended.',
  abort: 'It takes the release back to stable at once, and rejects it.',
  retry: 'It tries the rejected release again, from its first step.',
  restart: 'It replaces all pods by new pods of the same version, within maxUnavailable.',
  undo: 'It pushes a proposal that takes the release back in Git.',
};

function next() {
  const verbs = (who.may || []).filter((verb) => (app.actions || []).some((a) => a.verb === verb));
  const groups = ['To go on', 'To go back'].map((title, i) => group(title,
    (app.next || []).filter((n) => !!n.back === !!i), verbs.filter((verb) => (!!danger[verb] && !endsWatch(verb)) === !!i)));
  return groups.some(Boolean) && h('div', { class: 'pair' }, groups);
}

function group(title, commands, verbs) {
  if (!commands.length && !verbs.length) return null;
  const id = title.replaceAll(' ', '-');
  return h('section', { class: 'card', 'aria-labelledby': id }, h('h2', { id }, title),
    verbs.length > 0 && h('div', { class: 'buttons' }, verbs.map((verb) => h('button',
      { type: 'button', class: danger[verb] ? 'danger' : verb === 'promote' ? 'primary' : '', 'data-verb': verb,
      'data-key': verb, onclick: () => openAct(verb) }, verb[0].toUpperCase() + verb.slice(1)))),
    commands.map((n, i) => [title !== 'To ' + n.to && (!i || commands[i - 1].to !== n.to)
      && h('div', { class: 'dim' }, 'To ' + n.to),
      h('div', { class: 'command' }, h('code', { tabindex: 0 }, n.command), copyButton(n.command), page(n))]));
}

// page links to the pull request that a command merges.
function page(n) {
  const address = n.url || (n.branch && links.branch ? links.branch.replaceAll('{}', encodeURIComponent(n.branch)) : '');
  return /^https?:/.test(address)
    ? h('a', { class: 'button', href: address, rel: 'noreferrer' }, 'Pull request') : null;
}

function stepsOf(w) {
  // A first deployment protects no stable version, so its release has no steps.
  if (!w.steps || (app.release && !app.stable)) return h('p', { class: 'dim' }, 'no steps');
  return h('ol', { class: 'steps', tabindex: 0, 'aria-label': 'Steps of ' + w.workload },
    w.steps.map((s, i) => {
    const done = s.status === 'done';
    const current = s.status === 'current';
    return h('li', { class: done ? 'done' : current ? 'current' : '', 'aria-current': current ? 'step' : null },
      h('span', { class: 'dot', 'aria-hidden': 'true' }, done ? '✓' : i + 1),
        h('span', { class: 'hidden-title' },
        'Step ' + (i + 1) + ({ done: ', done: ', current: ', now: ', pending: ', to come: ' }[s.status] || ': ')), s.text,
      w.strategy !== 'blueGreen' && [h('br'), h('span', { class: 'dim' }, s.weight + (w.fullWeight === 100
        || !w.fullWeight ? '%' : '/' + w.fullWeight))], current && w.entered ? [h('br'),
        h('span', { class: 'dim' }, ago(w.entered))] : null);
  }));
}

function meter(label, percent, text) {
  const bar = h('i');
  bar.style.width = Math.min(100, percent) + '%';
  return [h('span', {}, label), h('span', { class: 'meter', role: 'img', 'aria-label': label + ' ' + text }, bar),
    h('span', {}, text)];
}

// widthOf is what a chart has: half of a card, where two fit next to each other.
function widthOf() {
  const inner = $('workloads').clientWidth - 34;
  return Math.max(220, inner >= 720 ? (inner - 16) / 2 : inner);
}

function workload(w) {
  const full = w.fullWeight || 100;
  const samples = (!exported && (app.samples || {})[w.workload]) || []; // an export has only one moment
  return h('section', { class: 'card', 'aria-label': w.workload },
    h('div', { class: 'titleline' }, h('h2', {}, w.workload), h('span', { class: 'dim' },
    w.strategy + (w.unread ? ', not observed' : ', ' + w.ready + '/' + ((w.revisions || []).reduce((n, r) => n + r.desired, 0)
      || w.replicas) + ' ready'))),
    stepsOf(w),
    w.moving && h('div', { class: 'weights' }, w.strategy === 'blueGreen'
      ? meter('switched', w.weight, w.weight + '%') : meter('asked', w.pods
      ? (w.pods * 100) / w.replicas : (w.weight * 100) / full,
      w.pods ? w.pods + (w.pods === 1 ? ' pod' : ' pods') : full === 100 ? w.weight + '%' : w.weight + '/' + full),
      !w.unread && w.strategy !== 'blueGreen' && meter('real', w.realWeight, w.realWeight + '% of the ' + (w.routed ? 'requests' : 'ready pods'))),
    w.surplus && h('p', { class: 'dim' }, w.surplus),
    w.routes && h('p', { class: 'dim' }, 'Routes in force: ' + w.routes.join(', ')),
    w.opened && h('p', { class: 'dim' }, 'Let past the last gate by ' + w.opened),
    samples.length > 0 && h('div', { class: 'pair' }, overTime(samples, w.moving, widthOf())),
    (w.revisions || []).filter((r) => r.problem).map((r) => h('p', { class: 'badpod' }, r.name + ': ' + r.problem)));
}

// pods is apart from the charts, which are drawn again every few seconds, so that text in a log stays selected.
function pods(w) {
  const all = (w.revisions || []).flatMap((r) => (r.pods || []).map((p) => ({ ...p, role: r.role || 'other' })));
  return all.length > 0 && h('section', { class: 'card', 'aria-label': 'Pods of ' + w.workload },
    h('details', { 'data-key': 'pods ' + w.workload, open: all.length <= 6 || all.some((p) => !p.ready) },
      h('summary', {}, all.length + (all.length === 1 ? ' pod of ' : ' pods of ') + w.workload),
      all.map((p) => h('div', { class: 'pod' }, later(path + '/pods/' + w.workload.split('/').at(-2) + '/' + p.name,
        h('span', { class: 'podline' }, h('span', {}, p.role), h('span', { class: 'mono' }, p.name),
        h('span', { class: p.ready ? '' : 'badpod' }, p.status), h('span', {}, p.restarts
        + (p.restarts === 1 ? ' restart' : ' restarts')), h('span', { class: 'dim' }, ago(p.created))), podView)))));
}

// podView shows the events of a pod, and the last lines of its logs.
const podView = (d) => [(d.notes || []).map((text) => h('p', { class: 'dim' }, text)),
  !d.events && !d.notes && h('p', { class: 'dim' }, 'No events; by default, they are deleted after an hour.'),
  h('ul', { class: 'events' }, (d.events || []).map((e) => h('li', {}, ago(e.at), ' ',
    h('strong', { class: e.type === 'Warning' && 'badpod' }, e.reason), e.count > 1 && ' × ' + e.count, ' ' + e.text))),
  (d.logs || []).map((l) => [h('p', { class: 'dim' }, 'The last lines of container ' + l.name),
    h('pre', { tabindex: 0 }, l.text || 'The log is empty.')])];

function analyses() {
  const runs = app.analyses || [];
  if (runs.length === 0) return null;
  return h('section', { class: 'card', 'aria-labelledby': 'verdicts-title' },
    h('h2', { id: 'verdicts-title' }, 'Verdicts'), runs.map((r) => h('div', {},
    h('div', { class: 'titleline' }, h('h3', {}, r.name), h('span', { class: 'verdict ' + r.phase }, r.phase),
      h('span', { class: 'dim' }, ago(r.started))), r.message && h('p', {}, r.message),
    h('div', { class: 'pair' }, (r.metrics || []).map((m) => metric(r, m))))));
}

// metric shows a chart and a table of measurements, and how they are made.
function metric(r, m) {
  const defined = (app.metrics || []).filter((d) => d.metric === m.metric);
  const limits = defined.length > 0 ? [...new Set(defined.map((d) => d.limits))] : [m.condition].filter(Boolean);
  const chart = measured({ ...m, condition: limits.join('; ') }, widthOf());
  return h('figure', {},
    h('figcaption', {}, h('strong', {}, m.metric), m.dryRun ? ' (dry run)' : '', ' ',
      h('span', { class: 'verdict ' + m.phase }, m.phase), ' · ' + counted(m),
      limits.map((text) => [h('br'), h('code', {}, text)])),
    chart, m.evidence && evidence(m.evidence, /^[^/]+\/watch$/.test(r.name) ? ' to the version before' : ' to stable'),
    (m.sees || []).map((text) => h('p', { class: 'dim sees' }, text)), m.message && h('p', { class: 'dim' }, m.message),
    h('details', { 'data-key': ['query', r.name, m.metric].join(' ') }, h('summary', {}, 'Query and measurements'),
      (defined.length > 0 ? defined : [{}]).map((d) => [d.query && h('p', { class: 'dim' }, 'Query of ' + d.provider),
        d.query && h('pre', { tabindex: 0 }, d.query), linksOf(d.query || '')]),
      h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Measurements of ' + r.name + ' ' + m.metric },
      h('table', {}, h('thead', {}, h('tr', {}, ['When', 'Value', 'Verdict'].map((t) => h('th', { scope: 'col' }, t)))),
      h('tbody', {}, (m.measurements || []).map((x) => h('tr', {}, h('td', { class: 'when' },
        new Date(x.at).toLocaleTimeString()), h('td', {}, dotted(x.value, x.message)),
        h('td', {}, h('span', { class: 'verdict ' + x.phase }, x.phase)))))))));
}

// evidence shows how much speaks against the new version, the estimated differences with their intervals, and what is missing.
function evidence(e, other) {
  const text = e.limit && amount(e.value) + (e.release === e.value ? '' : ', release ' + amount(e.release)) + ' of ' + amount(e.limit);
  return h('div', { class: 'evidence' }, text && [h('p', {}, 'Evidence that the new version is worse: ', h('strong', {}, text)),
    weighed(e, text, widthOf())], (e.differences || []).map((d) => h('p', {}, difference(d))),
    e.requests && h('p', { class: 'dim' }, amount(e.requests.canary) + ' requests to the new version, '
      + amount(e.requests.stable) + other),
    e.note && h('p', { class: 'lack' }, e.note));
}

// difference is the share of bad requests of the new version minus stable's share, with as many decimals as the interval needs.
function difference(d) {
  const places = Math.min(Math.max(1 - Math.floor(Math.log10(50 * (d.high - d.low))), 0), 4);
  const points = (v) => (v < 0 ? '−' : '+') + Math.abs(100 * v).toFixed(places);
  return (d.bound ? 'Slower than ' + d.bound : 'Bad requests') + ': ' + points(d.difference) + ' points, 95 % interval '
    + points(d.low) + ' to ' + points(d.high);
}

// linksOf fills the configured addresses. A link that needs a query is left out without one.
function linksOf(query) {
  const values = { app: app.app, namespace: app.namespace || '', query };
  const usable = Object.entries(app.links || {}).filter(([, to]) => query || !to.includes('{query}'));
  return usable.length > 0 && h('p', {}, usable.map(([title, to], i) => [i > 0 && ' · ', h('a', { rel: 'noreferrer',
    href: to.replace(/\{(app|namespace|query)\}/g, (_, key) => encodeURIComponent(values[key])) }, title)]));
}

function hooks() {
  const runs = app.hooks || [];
  if (runs.length === 0) return null;
  return h('section', { class: 'card', 'aria-labelledby': 'hooks-title' },
    h('h2', { id: 'hooks-title' }, 'Hooks'), runs.map((r) => h('div', {},
    h('div', { class: 'titleline' }, h('h3', {}, r.name), h('span', { class: 'dim' }, r.when),
      h('span', { class: 'verdict ' + (r.phase === 'Succeeded' ? 'Successful' : r.phase) }, r.phase),
      h('span', { class: 'dim' }, ago(r.since) + ' · ' + r.job)), r.message && h('p', {}, r.message),
      r.phase === 'Failed' && r.log && h('pre', { tabindex: 0 }, r.log))));
}

const counted = (m) => [[m.successful, 'ok'], [m.failed, 'failed'], [m.inconclusive, 'inconclusive'],
  [m.count - (m.successful || 0) - (m.failed || 0) - (m.inconclusive || 0), 'without a verdict'],
  [m.errors, 'errors']].filter(([n]) => n > 0).map(([n, what]) => n + ' ' + what).join(', ') || 'not recorded yet';

function draw() {
  if (!app) return;
  note(app.boardNote);
  part('title', { ...app, samples: 0, analyses: 0, hooks: 0, workloads: 0 }, title);
  part('next', [app.next, app.phase, app.release, app.coming, app.rejected, app.held, who.may], next);
  part('workloads', [app.workloads, app.samples, !app.stable, app.phase, widthOf()], () => (app.workloads || []).map(workload));
  part('pods', (app.workloads || []).map((w) => [w.workload, w.revisions]), () => (app.workloads || []).map(pods));
  part('analyses', [app.analyses, app.metrics, app.links, widthOf()], analyses);
  part('hooks', app.hooks, hooks);
  if (!exported) part('objects', name, objects);
  const version = [app.phase, app.release && app.release.hash, app.stable && app.stable.hash,
    app.rejected && app.rejected.hash, (app.workloads || []).map((w) => [w.step, w.moving])];
  const what = JSON.stringify(version.slice(1, 4));
  if (!who.may.length) part('diff', [what, who.actions], closed);
  else if (what !== asked) { asked = what; load('diff', path + '/diff', diff); }
  if (JSON.stringify(version) !== told) { told = JSON.stringify(version);
    load('history', path + '/history', past).then(drawAgain); }
}

// drawAgain is for what was drawn before the forge's addresses were known.
let drawn = '{}', compared = null;
function drawAgain() {
  if (JSON.stringify(links) === drawn) return;
  drawn = JSON.stringify(links);
  for (const id of ['title', 'next', 'diff']) made[id] = '';
  if (compared) part('diff', compared, () => diff(compared));
  draw();
}

// load shows the newest answer. A request that failed or was lost is sent again at the next event.
const turns = {};
async function load(id, address, build) {
  const turn = turns[id] = (turns[id] || 0) + 1;
  try {
    const data = await ask('GET', address);
    if (turn === turns[id]) part(id, data, () => build(data));
  } catch (err) {
    if (turn !== turns[id]) return;
    if (id === 'diff') asked = ''; else told = '';
    part(id, err.message, () => h('section', { class: 'card' }, h('h2', {},
      id === 'diff' ? 'What the release changes' : 'History'), h('p', { class: 'error' }, err.message)));
  }
}

// closed stands for the changes until somebody with a right to the app has signed in.
const closed = () => who.actions !== undefined && app.stable && (app.release || app.rejected)
  && h('section', { class: 'card', 'aria-labelledby': 'diff-title' }, h('h2', { id: 'diff-title' }, 'What the release changes'),
    h('p', { class: 'dim' }, 'Only signed-in people with a right to ' + name + ' see the changed manifests.'));

function diff(d) {
  compared = d;
  if (!d.to) return null;
  return h('section', { class: 'card', 'aria-labelledby': 'diff-title' },
    h('h2', { id: 'diff-title' }, 'What the release changes'),
    h('p', { class: 'dim' }, 'from ', commitLink(links, d.from), ' to ', commitLink(links, d.to),
      '; values of Secrets are masked'),
    d.objects.length === 0 && h('p', {}, 'Nothing that is applied.'),
    d.objects.map((o) => h('details', { 'data-key': 'diff ' + o.name, open: d.objects.length <= 3 },
      h('summary', {}, h('span', { class: 'mono' }, o.name), ' ' + o.verb),
      h('pre', { class: 'diff', tabindex: 0 }, o.text.replace(/\n$/,
        '').split('\n').map((l) => h('span', { class: l.startsWith('@@') ? 'at' : l.startsWith('+')
        && !l.startsWith('+++') ? 'add' : l.startsWith('-') && !l.startsWith('---') ? 'del' : null }, l || ' '))))));
}

// objects are the YAML documents of what should be in the cluster now.
const objects = () => h('section', { class: 'card', 'aria-labelledby': 'objects-title' },
  h('h2', { id: 'objects-title' }, 'Objects'),
  later(path + '/objects', 'What should be in the cluster now: gitrollout render --with-state', (d) => [
    h('p', { class: 'dim' }, dotted('Values of Secrets are masked', d.note)),
    d.objects.map((o) => h('details', { 'data-key': 'object ' + o.name }, h('summary', { class: 'mono' }, o.name),
      h('pre', { tabindex: 0 }, o.text)))]));

function past(d) {
  const releases = d.releases || [];
  links = d.links || {};
  return h('section', { class: 'card', 'aria-labelledby': 'history-title' },
    h('h2', { id: 'history-title' }, 'History'),
    releases.length === 0 && h('p', { class: 'dim' }, 'No release is on record yet.'),
    releases.map((r) => h('details', { 'data-key': 'release ' + r.hash + r.started }, h('summary', {},
      h('span', { class: 'verdict ' + (outcomes[r.outcome] || '') },
        r.outcome === 'inFlight' ? 'in flight' : r.outcome), ' ', r.subject || short(r.commit),
      h('span', { class: 'dim' }, ' · ' + person(r.author) + ' · ', ago(r.started),
        r.ended ? ', took ' + span((Date.parse(r.ended) - Date.parse(r.started)) / 1000) : '',
        r.of && r.outcome !== 'healthy' ? ', ' + (r.step - (r.skipped || 0)) + ' of ' + r.of + ' steps' : '')),
    h('dl', { class: 'facts' }, h('dt', {}, 'Version'), h('dd', {}, h('code', {}, r.hash), ' of ',
      commitLink(links, r.commit)),
      r.reason && [h('dt', {}, 'Why'), h('dd', {}, r.reason)], r.promotedBy
        && [h('dt', {}, 'Promoted by'), h('dd', {}, r.promotedBy.join(', '))],
      (r.analyses || []).flatMap((a) => (a.metrics || []).map((m) => [h('dt', {}, m.metric),
        h('dd', {}, h('span', { class: 'verdict ' + m.phase }, m.phase), ', ' + counted(m))]))),
    h('div', { class: 'scroll', tabindex: 0, role: 'region',
      'aria-label': 'Records of ' + r.hash + ' from ' + r.started },
      h('table', {}, h('thead', {}, h('tr', {}, ['When', 'What', 'Phase',
      'Record'].map((t) => h('th', { scope: 'col' }, t)))),
      h('tbody', {}, (r.transitions || []).map((t) => h('tr', {},
        h('td', { class: 'when' }, new Date(t.at).toLocaleString()), h('td', {}, t.text),
        h('td', {}, phaseOf(t.phase)), h('td', {}, commitLink(links, t.commit))))))))),
    d.note && h('p', { class: 'dim' }, d.note));
}

const outcomes = { healthy: 'Successful', recorded: 'Successful', applied: 'Successful', rejected: 'Failed',
  reverted: 'Inconclusive', superseded: 'Inconclusive', inFlight: 'Running' };

const podCount = (n) => n + (n === 1 ? ' pod' : ' pods');

// effect says what happens to how many pods. The argument through is the promotion's target, as in the form.
function effect(verb, through) {
  const all = app.workloads || [], moving = all.filter((w) => w.moving), of = moving.length > 0 ? moving : all;
  if (through === 'adopt' || through === 'entry') return '';
  if (of.length === 0 || of.some((w) => w.unread)) return 'The number of pods is not observed.';
  const sum = (list, n) => list.reduce((total, x) => total + n(x), 0);
  const count = (...roles) => sum(of, (w) => sum((w.revisions || []).filter((r) => roles.includes(r.role)), (r) => r.ready));
  const fresh = count('canary', 'preview'), old = count('stable', 'active'), want = sum(of, (w) => w.replicas);
  const now = podCount(fresh) + ' of the new version and ' + podCount(old) + ' of the stable version are ready now.';
  switch (verb) {
    case 'promote': return now + ' ' + (through === 'full' ? 'All ' + podCount(want) + ' get the new version.' : goesOn(moving, through));
    case 'hold': return through === 'off' ? now : now + ' No pod changes.';
    case 'abort': return endsWatch(verb) ? now + ' No pod changes.' : now + ' After it, ' + podCount(want) + ' of the stable version serve, and none of the new version.';
    case 'retry': return 'The new version replaces up to ' + podCount(want) + ', step by step.';
    case 'undo': return 'No pod changes before the merge. The merge takes up to ' + podCount(want) + ' back.';
    default: return 'These are ' + podCount(sum(all, (w) => w.replicas)) + '.';
  }
}

// goesOn says which step is next for each workload, after the present step or after a chosen one.
function goesOn(moving, through) {
  return moving.map((w) => {
    const at = through ? Number(through) : w.step, step = (w.steps || [])[at], of = moving.length > 1 ? ' of ' + w.workload : '';
    if (!step) return 'Then all ' + podCount(w.replicas) + of + ' get the new version.';
    return 'Next is step ' + (at + 1) + ' of ' + w.steps.length + of + ': ' + step.text + (w.strategy === 'canary' ? ', about '
      + Math.ceil((w.replicas * step.weight) / (w.fullWeight || 100)) + ' of ' + podCount(w.replicas) : '') + '.';
  }).join(' ');
}

// explainAct tells in the dialog what the chosen action does.
function explainAct() {
  const verb = $('act').dataset.verb, form = new FormData($('act-form'));
  $('act-what').textContent = [endsWatch(verb) ? 'It ends the watch, and the version stays.' : means[verb], effect(verb, form.get('through') || form.get('off')),
    'It becomes a commit by ' + who.name + ' <' + who.email + '>.'].filter(Boolean).join(' ');
}
$('act-form')?.addEventListener('change', explainAct);

function openAct(verb) {
  const title = verb[0].toUpperCase() + verb.slice(1) + ' ' + name;
  $('act').dataset.verb = verb;
  $('act-title').textContent = title;
  $('act-error').textContent = '';
  $('act-go').textContent = verb[0].toUpperCase() + verb.slice(1);
  const fields = [], can = (fits) => app.actions.some((a) => a.verb === verb && fits(a));
  if (verb === 'hold' || verb === 'abort') fields.push(h('label', { for: 'reason' }, 'Why (optional)'),
    h('input', { id: 'reason', name: 'reason', maxlength: 300 }));
  if (verb === 'hold') fields.push(h('label', { for: 'off' }, 'Hold'),
    h('select', { id: 'off', name: 'off' }, can((a) => !a.off) && h('option', { value: '' }, 'keep it where it is'),
    can((a) => a.off) && h('option', { value: 'off' }, 'end the hold')));
  if (verb === 'promote') {
    const steps = (app.workloads || []).flatMap((w) => w.steps || []).length ? (app.workloads
      || []).find((w) => w.steps).steps : [];
    const from = Math.min(...(app.workloads || []).filter((w) => w.moving).map((w) => w.step - 1), steps.length);
    fields.push(h('label', { for: 'through' }, 'How far'), h('select', { id: 'through', name: 'through' },
      can((a) => !a.full && !a.adoptAnyway && !a.through) && h('option', { value: '' }, 'past the step that it waits at'),
      can((a) => a.through) && h('option', { value: 'entry' }, 'take the shared change before its cohort'),
      can((a) => a.full) && [steps.map((s, i) => i > from && h('option', { value: String(i + 1) },
        'through step ' + (i + 1) + ': ' + s.text)), h('option', { value: 'full' },
        'fully: skip all the steps that are left')],
      can((a) => a.adoptAnyway) && h('option', { value: 'adopt' }, 'take it over from its other controller')));
  }
  $('act-fields').replaceChildren(...fields);
  explainAct();
  $('act').showModal();
}

$('act-form')?.addEventListener('submit', async (e) => {
  e.preventDefault();
  const verb = $('act').dataset.verb;
  const { release } = app.actions.find((a) => a.verb === verb) || {};
  const form = new FormData(e.target), through = form.get('through') || '';
  const body = { verb, release, reason: form.get('reason') || '', off: form.get('off') === 'off',
    full: through === 'full', adoptAnyway: through === 'adopt', through: /^(\d+|entry)$/.test(through) ? through : '' };
  $('act-go').disabled = true;
  $('act-error').textContent = '';
  try {
    const { said } = await ask('POST', path + '/actions', body, { 'X-CSRF-Token': who.csrf });
    $('act').close();
    $('said').replaceChildren(h('p', { class: 'card' }, said));
  } catch (err) {
    $('act-error').textContent = err.message;
  }
  $('act-go').disabled = false;
});

// Back to the list as it was filtered.
$('back').href = store.get('fleet') || $('back').href;
keys({ Escape: () => $('back').click() });
let resized = 0;
addEventListener('resize', () => { clearTimeout(resized); resized = setTimeout(draw, 150); });
// The newest point of a release that moves is now.
setInterval(() => { if (app && app.samples && (app.workloads || []).some((w) => w.moving)) { made.workloads = '';
  draw(); } }, 5000);

live({ app: name }, {
  app: (detail) => { app = detail; draw(); },
  gone: () => { app = null; if (!$('missing')) note('This cluster has no app ' + name + ' (any more).'); },
});
me(name).then((found) => { who = found; draw(); }).catch((err) => note(err.message));
