// The fleet view: one row for each app, those that need somebody first. Rows are
// made once and changed in place; what is not on the screen is not laid out.
import { $, h, ago, left, live, note, phases, phaseOf, short, keys, me, store } from './common.js';

const order = Object.keys(phases);
const apps = new Map(); // name -> {row, el, rank, text}
let ordered = []; // the same, as they are shown
const filter = { words: [], phases: new Set(), text: '' };

const rankOf = (row) => String(row.held === 'held' ? 0 : row.held ? 4.5 : order.indexOf(row.phase) + 1).padStart(4,
  '0') + row.app;
const textOf = (row) => [row.app, row.phase, row.held, row.text, row.commit, row.subject,
  row.author].join(' ').toLowerCase();

function fill(app) {
  const { row } = app;
  const full = row.of > 0;
  const fillBar = h('i');
  fillBar.style.width = Math.min(100, row.real || 0) + '%';
  const asked = h('b');
  asked.style.left = 'min(' + (row.weight || 0) + '%, calc(100% - 2px))';
  app.el.dataset.phase = row.phase;
  app.el.replaceChildren(h('a', { class: 'row', href: '/apps/' + encodeURIComponent(row.app) },
    h('span', {}, h('span', { class: 'name' }, row.app), h('span', { class: 'sub' },
      row.subject, row.commit ? ' · ' + short(row.commit) : '', row.author ? ' · ' + row.author : '',
        row.since ? [' · ', ago(row.since)] : '')),
    h('span', { class: 'phasecell' }, phaseOf(row.phase, row.held)),
    h('span', { class: 'move' }, full ? [h('span', { class: 'step' },
      row.step + '/' + row.of + ' ' + (row.name || '') + (row.replicas ? ', ' + (row.real || 0) + '%' : '')),
      h('span', { class: 'meter', 'aria-hidden': 'true' }, fillBar, asked)] : ''),
    h('span', { class: 'pods', title: 'ready pods' }, row.replicas
      ? (row.ready || 0) + '/' + row.replicas : ''),
    h('span', { class: 'why' }, row.text, row.due ? [' ', left(row.due)] : '',
      row.warnings ? ' ⚠ ' + row.warnings : '')));
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

const passes = (app) => filter.words.every((w) => app.text.includes(w));
const shows = (app) => passes(app) && (filter.phases.size === 0 || filter.phases.has(app.row.phase));

function put(row) {
  let app = apps.get(row.app);
  const rank = rankOf(row);
  if (app && app.rank === rank) {
    app.row = row;
  } else {
    if (app) take(app); else app = { el: h('li') };
    const focused = app.el.contains(document.activeElement);
    Object.assign(app, { row, rank });
    const at = position(rank);
    $('rows').insertBefore(app.el, at < ordered.length ? ordered[at].el : null);
    ordered.splice(at, 0, app);
    apps.set(row.app, app);
    app.focus = focused;
  }
  app.text = textOf(row);
  const had = app.focus || app.el.contains(document.activeElement);
  fill(app);
  if (had) app.el.firstChild.focus({ preventScroll: true });
  app.focus = false;
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
    ordered = fleet.apps.map((row) => ({ row, rank: rankOf(row), text: textOf(row), el: h('li') }));
    ordered.sort((a, b) => (a.rank < b.rank ? -1 : 1));
    for (const app of ordered) { apps.set(app.row.app, app); fill(app); app.el.hidden = !shows(app); }
    $('rows').replaceChildren(...ordered.map((app) => app.el));
  }
  $('main').classList.toggle('many', apps.size > 300); // ages of that many are not worth a second's work
  const back = store.get('app');
  if (back && apps.has(back) && document.activeElement === document.body) {
    apps.get(back).el.firstChild.focus();
    store.set('app', '');
  }
}

const buttons = new Map();
for (const phase of order) {
  const n = h('span', { class: 'n' }, '0');
  const button = h('button', { type: 'button', 'aria-pressed': 'false', 'data-phase': phase, onclick: () => {
    if (!filter.phases.delete(phase)) filter.phases.add(phase);
    apply();
  } }, h('span', { class: 'phase', 'data-phase': phase }, phases[phase] + ' ' + phase), ' ', n);
  buttons.set(phase, { button, n });
  $('phases').append(button);
}

let shown = 0;
function counts() {
  const by = {};
  shown = 0;
  for (const app of ordered) {
    if (!app.el.hidden) shown++;
    if (passes(app)) by[app.row.phase] = (by[app.row.phase] || 0) + 1;
  }
  for (const [phase, { button, n }] of buttons) {
    n.textContent = by[phase] || 0;
    button.setAttribute('aria-pressed', filter.phases.has(phase));
    button.hidden = !by[phase] && !filter.phases.has(phase);
  }
  $('count').textContent = shown === apps.size
    ? apps.size + (apps.size === 1 ? ' app' : ' apps') : shown + ' of ' + apps.size + ' apps';
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
  if (filter.phases.size) q.set('phase', [...filter.phases].join(','));
  history.replaceState(null, '', q.size ? '/?' + q : '/');
  store.set('fleet', location.search);
}

function fromURL() {
  const q = new URLSearchParams(location.search);
  filter.text = $('q').value = q.get('q') || '';
  filter.phases = new Set((q.get('phase') || '').split(',').filter((p) => phases[p]));
  apply();
}

$('q').addEventListener('input', () => { filter.text = $('q').value; apply(); });
$('filter').addEventListener('submit', (e) => e.preventDefault());
$('rows').addEventListener('click', (e) => { const li = e.target.closest('li');
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
    if (filter.text || filter.phases.size) { filter.phases.clear(); filter.text = $('q').value = ''; apply(); }
    document.activeElement.blur();
  },
});

fromURL();
live({}, {
  reset: (fleet) => { note(fleet.note); reset(fleet); counts(); },
  change: (fleet) => { note(fleet.note); fleet.apps.forEach(put); (fleet.gone || []).forEach(drop); counts(); },
});
me().catch((err) => note(err.message));
