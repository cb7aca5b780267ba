// The fleet view: one row for each app, by default the most urgent app first. Rows are
// made once and changed in place; rows outside the screen have no layout.
import { $, h, ago, dotted, images, left, live, note, paths, phases, phaseOf, short, keys, lasting, me,
  pageOf, remember, store } from './common.js';

const order = Object.keys(phases); // most urgent first
const urgent = [...order.slice(0, 3), 'held', ...order.slice(3, -1), 'Unknown', 'Healthy'];
const apps = new Map(); // name -> {row, el, rank, text}
let ordered = []; // the same, as they are shown
const filter = { words: [], show: new Set(), text: '', ns: '', sort: 'urgency' };

// sorts has the orders, as gitrollout list --sort. Apps that are equal in an order are sorted by name.
const sorts = {
  urgency: (row) => urgent.indexOf(row.held === 'held' ? 'held' : row.phase) + 1,
  name: () => 0,
  age: (row) => 1e13 - (Date.parse(row.since) || 0), // newest first
  namespace: (row) => row.namespace || '',
  change: ({ shared }) => (shared
    ? shared.file + ' ' + shared.id + ' ' + String(shared.cohort).padStart(2, '0') : '\uffff'),
};

// The favourites are names of apps, one in each line. Each cluster has its own, as several may have one address in turn.
const place = 'favourites of ' + document.querySelector('.cluster').textContent;
let favourites = new Set();
function recall() {
  const names = lasting.get(place);
  if (names !== null) favourites = new Set(names.split('\n').filter(Boolean));
}
recall();

function toggle(row) {
  recall(); // another tab may have changed them
  if (!favourites.delete(row.app)) favourites.add(row.app);
  lasting.set(place, [...favourites].join('\n'));
  put(row);
  counts();
}

const padded = (value) => (typeof value === 'string' ? value : String(value).padStart(14, '0'));
const rankOf = (row) => (favourites.has(row.app) ? '0 ' : '1 ') + padded(sorts[filter.sort](row)) + ' ' + row.app;
const textOf = (row) => [row.app, row.images, row.phase, row.held, row.text, row.commit, row.subject,
  row.author, row.shared && row.shared.file + ' ' + row.shared.id].join(' ').toLowerCase();

// cohort is of an app that has entered a shared change. The text of a waiting app names its cohort.
const cohort = (s) => (s && (s.state === 'entered' || s.state === 'rejected')
  ? [' ' + s.state + ' cohort ' + s.cohort + ' of ' + s.of + ' ', paths('(' + s.file + ')')] : '');

function fill(app) {
  const { row } = app;
  const full = row.of > 0;
  const fillBar = h('i');
  fillBar.style.width = Math.min(100, row.real || 0) + '%';
  const asked = h('b');
  asked.style.left = 'min(' + (row.weight || 0) + '%, calc(100% - 2px))';
  const starred = favourites.has(row.app);
  app.el.dataset.phase = row.phase;
  app.el.replaceChildren(h('a', { class: 'row', href: pageOf(row.app) },
    h('span', { class: 'what' }, h('span', { class: 'name' }, row.app), ' ', images(row.images),
      h('span', { class: 'sub' }, dotted(row.subject, row.author, row.since && ago(row.since),
        row.commit && h('span', { class: 'mono' }, short(row.commit))),
        row.namespace && h('span', { class: 'ns' }, ' · ' + row.namespace))),
    h('span', { class: 'phasecell' }, phaseOf(row.phase, row.held)),
    h('span', { class: 'move' }, full ? [h('span', { class: 'step' },
      row.step + '/' + row.of + ' ' + (row.name || '') + (row.replicas ? ', ' + (row.real || 0) + '%' : '')),
      h('span', { class: 'meter', 'aria-hidden': 'true' }, fillBar, asked)] : row.name),
    h('span', { class: 'pods', title: 'ready pods' }, row.replicas
      ? (row.ready || 0) + '/' + row.replicas : ''),
    h('span', { class: 'why' }, paths(row.text), cohort(row.shared), row.due ? [' ', left(row.due)] : '',
      row.warnings ? ' ⚠ ' + row.warnings : '')),
  h('button', { type: 'button', class: 'quiet star', 'aria-pressed': String(starred), 'aria-label': 'Favourite: ' + row.app,
    onclick: () => toggle(row) }, starred ? '★' : '☆'));
}

function position(rank) {
  let low = 0, high = ordered.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ordered[middle].rank < rank) low = middle + 1; else high = middle;
  }
  return low;
}

function take(app) {
  const at = position(app.rank);
  if (ordered[at] === app) ordered.splice(at, 1);
}

const passes = (app) => (!filter.ns || app.row.namespace === filter.ns)
  && filter.words.every((w) => app.text.includes(w));
const shows = (app) => passes(app) && (filter.show.size === 0 || [...filter.show].some((c) => chips[c](app.row)));

// focusIn says which child of a row has the focus: its link or its star.
const focusIn = (app) => (app.el.contains(document.activeElement)
  ? document.activeElement === app.el.lastChild ? 'lastChild' : 'firstChild' : '');

function put(row) {
  let app = apps.get(row.app);
  const rank = rankOf(row);
  if (app && app.rank === rank) {
    app.row = row;
  } else {
    if (app) take(app); else app = { el: h('li') };
    const focused = focusIn(app);
    Object.assign(app, { row, rank });
    const at = position(rank);
    $('rows').insertBefore(app.el, at < ordered.length ? ordered[at].el : null);
    ordered.splice(at, 0, app);
    apps.set(row.app, app);
    app.focus = focused;
  }
  app.text = textOf(row);
  const had = app.focus || focusIn(app);
  fill(app);
  if (had) app.el[had].focus({ preventScroll: true });
  app.focus = '';
  app.el.hidden = !shows(app);
}

function drop(name) {
  const app = apps.get(name);
  if (!app) return;
  take(app);
  app.el.remove();
  apps.delete(name);
}

// reset is everything: rows are made in a fragment and shown at once.
function reset(fleet) {
  const names = new Set(fleet.apps.map((r) => r.app));
  for (const name of [...apps.keys()]) if (!names.has(name)) drop(name);
  if (apps.size > 0) {
    fleet.apps.forEach(put);
  } else {
    ordered = fleet.apps.map((row) => ({ row, text: textOf(row), el: h('li') }));
    for (const app of ordered) { apps.set(app.row.app, app); fill(app); app.el.hidden = !shows(app); }
    arrange();
  }
  $('main').classList.toggle('many', apps.size > 300); // ages of that many are not worth a second's work
  const back = store.get('app');
  if (back && apps.has(back) && document.activeElement === document.body) {
    apps.get(back).el.firstChild.focus();
    store.set('app', '');
  }
}

// arrange sorts all rows.
function arrange() {
  for (const app of ordered) app.rank = rankOf(app.row);
  ordered.sort((a, b) => (a.rank < b.rank ? -1 : 1));
  $('rows').replaceChildren(...ordered.map((app) => app.el));
}

// chips has a filter for each chip. A row has to pass one of the chips that are pressed.
const failing = ['Degraded', 'Aborting', 'Stalled'];
const chips = { needs: (row) => row.needs, failing: (row) => failing.includes(row.phase),
  held: (row) => row.held === 'held', Paused: (row) => row.phase === 'Paused' };
const always = Object.keys(chips);
const labels = { needs: 'Needs me', failing: '✖ Failing', held: '■ Held', favourites: '★ Favourites' };
for (const phase of order) chips[phase] = (row) => row.phase === phase;
chips.favourites = (row) => favourites.has(row.app);

const buttons = new Map();
for (const chip of Object.keys(chips)) {
  const n = h('span', { class: 'n' }, '0');
  const button = h('button', { type: 'button', 'aria-pressed': 'false', 'data-chip': chip, onclick: () => {
    if (!filter.show.delete(chip)) filter.show.add(chip);
    apply();
  } }, h('span', { class: 'phase', 'data-phase': chip }, labels[chip] || phases[chip] + ' ' + chip), ' ', n);
  buttons.set(chip, { button, n });
  $('chips').append(button);
}

let shown = 0;
function counts() {
  shown = ordered.filter((app) => !app.el.hidden).length;
  const rows = ordered.filter(passes).map((app) => app.row);
  for (const [chip, { button, n }] of buttons) {
    const count = rows.filter(chips[chip]).length, pressed = filter.show.has(chip);
    n.textContent = count;
    button.setAttribute('aria-pressed', pressed);
    button.hidden = !pressed && !always.includes(chip) && (!count || failing.includes(chip));
  }
  spaces();
  $('count').textContent = shown === apps.size
    ? apps.size + (apps.size === 1 ? ' app' : ' apps') : shown + ' of ' + apps.size + ' apps';
}

// spaces offers the namespaces, if there are several.
let offered = '';
function spaces() {
  const names = [...new Set([filter.ns, ...ordered.map((app) => app.row.namespace)])].filter(Boolean).sort();
  $('ns-field').hidden = names.length < 2 && !filter.ns;
  $('rows').classList.toggle('spaces', names.length > 1);
  if (offered !== names.join()) $('ns').replaceChildren(new Option('all', ''), ...names.map((n) => new Option(n, n)));
  offered = names.join();
  $('ns').value = filter.ns;
}

function apply() {
  filter.words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  for (const app of ordered) {
    const hidden = !shows(app);
    if (app.el.hidden !== hidden) app.el.hidden = hidden;
  }
  counts();
  const q = new URLSearchParams();
  if (filter.text) q.set('q', filter.text);
  if (filter.show.size) q.set('show', [...filter.show].join(','));
  if (filter.ns) q.set('ns', filter.ns);
  if (filter.sort !== 'urgency') q.set('sort', filter.sort);
  remember(q);
}

// changes shows the shared changes. A click shows a change's apps.
function changes(all = []) {
  const part = (c, state) => (c.states[state] ? ', ' + c.states[state] + ' ' + state : '');
  $('changes').replaceChildren(...all.map((c) => h('li', {}, h('button', { type: 'button', class: 'quiet',
    onclick: () => { filter.text = $('q').value = c.id; apply(); } }, 'Shared change of ', paths(c.file), ' (' + c.id
    + '), cohort ' + c.cohort + ' of ' + c.of + ': ' + (c.states.done || 0) + ' of ' + c.apps + ' apps done'
    + ['entered', 'rejected', 'waiting'].map((state) => part(c, state)).join('')))));
}

function fromURL() {
  const q = new URLSearchParams(location.search);
  filter.text = $('q').value = q.get('q') || '';
  filter.show = new Set((q.get('show') || '').split(',').filter((c) => Object.hasOwn(chips, c)));
  filter.ns = q.get('ns') || '';
  filter.sort = $('sort').value = Object.hasOwn(sorts, q.get('sort')) ? q.get('sort') : 'urgency';
  apply();
}

$('q').addEventListener('input', () => { filter.text = $('q').value; apply(); });
$('ns').addEventListener('change', () => { filter.ns = $('ns').value; apply(); });
$('sort').addEventListener('change', () => { filter.sort = $('sort').value; arrange(); apply(); });
$('filter').addEventListener('submit', (e) => e.preventDefault());
$('rows').addEventListener('click', (e) => { const li = e.target.closest('a');
  if (li) store.set('app', li.querySelector('.name').textContent); });

function move(by) {
  const visible = ordered.filter((app) => !app.el.hidden);
  const at = visible.findIndex((app) => app.el.contains(document.activeElement));
  const next = visible[at < 0 ? (by > 0 ? 0 : visible.length - 1) : Math.min(visible.length - 1,
    Math.max(0, at + by))];
  if (next) { next.el.firstChild.focus(); next.el.scrollIntoView({ block: 'nearest' }); }
}

keys({
  '/': () => { $('q').focus(); $('q').select(); },
  j: () => move(1), k: () => move(-1),
  ArrowDown: (e) => (e.target.id === 'q' ? move(1) : false),
  Enter: (e) => { if (e.target.id !== 'q') return false; const first = ordered.find((app) => !app.el.hidden);
    if (first) first.el.firstChild.click(); },
  Escape: () => {
    filter.show.clear();
    filter.text = filter.ns = $('q').value = '';
    apply();
    document.activeElement.blur();
  },
});

fromURL();
live({}, {
  reset: (fleet) => { note(fleet.note); changes(fleet.changes); reset(fleet); counts(); },
  change: (fleet) => { note(fleet.note); changes(fleet.changes); fleet.apps.forEach(put); (fleet.gone || []).forEach(drop); counts(); },
});
me().catch((err) => note(err.message));
