// The view of all stages: a row for each app and a column for each stage. The server sorts and searches.
import { $, h, ago, dotted, exported, images, keys, linked, lost, me, note, pageOf, paths, phaseOf, remember, setNow,
  short, store } from './common.js';

const here = document.querySelector('.cluster').textContent;
const every = 10000; // milliseconds between questions, while the page can be seen
const rows = new Map(); // app -> {text, el}
let timer, turn = 0, tag = '', notes = '', heads = '';

const waits = ['ReleasesClosed', 'HookRuns', 'WaitsForCohort', 'Stage']; // rollout.Held.Waits

// shortImage is rollout.ShortImage: web:v2, or web@1f2e3d4.
function shortImage(image) {
  const [name, digest] = image.split('@');
  return name.slice(name.lastIndexOf('/') + 1) + (digest ? '@' + digest.slice(digest.indexOf(':') + 1).slice(0, 7) : '');
}

// fact is the part of a cluster's record that the page shows.
function fact(record, all) {
  const { cluster, phase, held, waiting, reason, source } = record;
  const newest = record.release || record.stable || (source ? { ...source, since: source.when } : {});
  const isWait = held && waits.includes(held.reason);
  let why = held ? held.message : waiting || (phase === 'Healthy' ? '' : reason) || '';
  if (isWait) why = why.replace(/^.*? waits for /, 'waits for ');
  const about = 'cluster ' + cluster + ': ', problem = phase === 'Unknown' && all.find((n) => n.startsWith(about));
  if (problem) why = problem.slice(about.length);
  return { cluster, phase, held: held && (isWait ? 'waiting' : 'held'), why, commit: short(newest.commit),
    version: (newest.images || []).map(shortImage).join(', ') || newest.subject, since: newest.since };
}

// cell puts the clusters of a stage together that are in the same state.
function cell(stage, records, all) {
  const same = new Map();
  for (const f of records.map((r) => fact(r, all))) {
    const key = JSON.stringify([f.phase, f.held, f.version, f.commit, f.why]);
    const of = same.get(key);
    if (!of) same.set(key, { ...f, clusters: [f.cluster] });
    else { of.clusters.push(f.cluster); if (f.since > of.since) of.since = f.since; }
  }
  const names = (f) => (f.clusters.join() === stage ? '' : f.clusters.length > 4
    ? h('details', {}, h('summary', {}, f.clusters.length + ' clusters'), f.clusters.join(', '))
    : h('div', { class: 'dim' }, f.clusters.join(', ')));
  return h('td', { role: 'cell', 'data-stage': stage || 'no stage' }, same.size
    ? [...same.values()].map((f) => h('div', { class: 'at' }, names(f),
      h('div', {}, phaseOf(f.phase, f.held).map((part) => [part, ' ']), images(f.version)),
      h('div', { class: 'dim' }, dotted(f.commit && h('code', {}, f.commit), f.since && ago(f.since))),
      f.why && h('div', { class: 'why' }, paths(f.why))))
    : h('span', { class: 'dim' }, '–'));
}

function row(app, stages, all) {
  const records = stages.map((s) => (app.stages[s] || []));
  const name = app.app;
  const link = records.flat().some((r) => r.cluster === here)
    && h('a', { href: pageOf(name), onclick: () => store.set('app', name) }, name);
  return h('tr', { role: 'row' }, h('th', { role: 'rowheader', scope: 'row' }, link || name),
    stages.map((s, i) => cell(s, records[i], all)));
}

// show makes only changed rows anew, and keeps the focus.
function show(fleet) {
  const apps = fleet.apps || [], all = fleet.notes || [], focus = document.activeElement.closest('#cells tr th a');
  const old = new Map(rows);
  const columns = JSON.stringify(fleet.stages);
  if (heads !== columns) {
    heads = columns;
    old.clear();
    $('stages').replaceChildren(...['App', ...fleet.stages].map((s) => h('th', { role: 'columnheader', scope: 'col' }, s || 'no stage')));
    document.querySelector('.matrix').style.minWidth = 8 + 8 * fleet.stages.length + 'rem';
  }
  rows.clear();
  for (const app of apps) {
    const text = JSON.stringify(app) + all;
    const was = old.get(app.app);
    rows.set(app.app, was && was.text === text ? was : { text, el: row(app, fleet.stages, all) });
  }
  $('main').classList.toggle('many', apps.length > 100);
  $('cells').replaceChildren(...[...rows.values()].map((r) => r.el));
  $('count').textContent = apps.length + (apps.length === 1 ? ' app' : ' apps');
  notes = all.join('\n');
  const back = focus ? focus.textContent : document.activeElement === document.body && store.get('app');
  if (back && rows.has(back)) rows.get(back).el.querySelector('a')?.focus({ preventScroll: !!focus });
  store.set('app', '');
}

// found searches an export, where no server does. A row's text and its stages have to contain each word.
function found() {
  const fleet = exported.answers['/api/v1/fleet'], words = $('q').value.toLowerCase().split(/\s+/);
  return { ...fleet, apps: (fleet.apps || []).filter((app) => {
    const text = [row(app, fleet.stages, fleet.notes || []).textContent, ...Object.keys(app.stages)].join(' ').toLowerCase();
    return words.every((w) => text.includes(w));
  }) };
}

// look asks for news. Only the answer to the last question counts.
async function look() {
  clearTimeout(timer);
  if (exported) { show(found()); note(notes); return; }
  if (document.hidden) return;
  const mine = ++turn;
  try {
    const answer = await fetch('/api/v1/fleet?q=' + encodeURIComponent($('q').value), { headers: tag ? { 'If-None-Match': tag } : {} });
    if (answer.status === 404) location.reload(); // fleet.yaml has left Git
    const fleet = answer.status === 304 ? null : await answer.json();
    if (mine !== turn) return;
    setNow(answer.headers.get('Date'));
    if (fleet && !answer.ok) throw new Error(fleet.error);
    if (fleet) show(fleet);
    tag = answer.headers.get('ETag');
    note(notes);
    linked('live', 'live');
  } catch (err) {
    if (mine !== turn) return;
    note(err.message);
    linked('lost', lost);
  }
  timer = setTimeout(look, every);
}

function search(text) {
  $('q').value = text;
  remember(new URLSearchParams(text && { q: text }));
  tag = '';
  turn++; // an answer on its way is to the last search
  clearTimeout(timer);
  timer = setTimeout(look, 150);
}

function move(by) {
  const links = [...$('cells').querySelectorAll('th a')];
  const at = links.indexOf(document.activeElement);
  links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
}

keys({
  '/': () => { $('q').focus(); $('q').select(); },
  j: () => move(1), k: () => move(-1),
  ArrowDown: (e) => (e.target.id === 'q' ? move(1) : false),
  Enter: (e) => { if (e.target.id !== 'q') return false; $('cells').querySelector('th a')?.click(); },
  Escape: () => { search(''); document.activeElement.blur(); },
});
$('q').addEventListener('input', () => search($('q').value));
$('filter').addEventListener('submit', (e) => e.preventDefault());
document.addEventListener('visibilitychange', look);

search(new URLSearchParams(location.search).get('q') || '');
look();
me().catch((err) => note(err.message));
