// What both pages share: making elements, the live stream, times, signing in.
// Text from Git reaches the page as text nodes and attributes only, never as HTML.

export const phases = {
  Degraded: '✖', Stalled: '!', Aborting: '▼', Paused: '‖', Progressing: '◐', Promoting: '▲', Pending: '○',
    Healthy: '✔',
};

const svgNames = new Set(['svg', 'path', 'line', 'text', 'circle', 'rect', 'g', 'title', 'polygon']);

// h makes an element: h('a', {href: '/', class: 'x', onclick: f}, 'text', child).
export function h(name, attributes, ...children) {
  const el = svgNames.has(name) ? document.createElementNS('http://www.w3.org/2000/svg',
    name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) el.addEventListener(key.slice(2), value);
    else el.setAttribute(key, value === true ? '' : value);
  }
  el.append(...children.flat(9).filter((c) => c !== undefined && c !== null && c !== false
    && c !== '').map((c) => (c instanceof Node ? c : String(c))));
  return el;
}

export const $ = (id) => document.getElementById(id);

// An export's page has the server's answers by path, and the time of their commit. Its pages are files.
export const exported = JSON.parse($('exported')?.textContent || 'null');
export const pageOf = (app) => (exported ? 'app-' + encodeURIComponent(app) + '.html' : '/apps/' + encodeURIComponent(app));

// The server's clock: countdowns are right on a machine whose clock is not.
let skew = 0;
export const now = () => (exported ? Date.parse(exported.at) : Date.now() + skew);
export const setNow = (at) => { skew = Date.parse(at) - Date.now(); };

export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return s + 's';
  if (s < 3600) return Math.floor(s / 60) + 'm' + (s < 600 && s % 60 ? String(s % 60).padStart(2, '0') + 's' : '');
  if (s < 86400) return Math.floor(s / 3600) + 'h' + (s % 3600 >= 60 ? String(Math.floor((s % 3600) / 60)).padStart(2,
    '0') + 'm' : '');
  return Math.floor(s / 86400) + 'd';
}

// ago and left make elements that go on counting.
export const ago = (at) => h('time', { datetime: at, title: new Date(at).toLocaleString(),
  'data-ago': Date.parse(at) }, agoText(Date.parse(at)));
export const left = (at) => h('time', { datetime: at, title: new Date(at).toLocaleString(),
  'data-due': Date.parse(at) }, leftText(Date.parse(at)));
const agoText = (t) => span((now() - t) / 1000) + ' ago';
const leftText = (t) => (t > now() ? 'in ' + span((t - now()) / 1000) : 'now');

setInterval(() => {
  for (const el of document.querySelectorAll('time[data-due], main:not(.many) time[data-ago]')) {
    const text = el.dataset.due ? leftText(+el.dataset.due) : agoText(+el.dataset.ago);
    if (el.textContent !== text) el.textContent = text;
  }
}, 1000);

export const short = (id) => (id || '').slice(0, 7);
export const person = (author) => (author || '').replace(/ <.*/, '');

// images breaks between words and after : / @ only. A part longer than its line ends in "…".
export const images = (text) => text && h('span', { class: 'images', title: text },
  text.split(/(\s+)|(?<=[:/@])/).map((part) => (part && part.trim() ? h('span', {}, part) : part)));

// paths lets a long path or field break after / . : ] instead of inside a word.
export const paths = (text) => (text || '').split(/(?<=\S{9}[/.:\]])(?=\S)/).map((part) => [h('wbr'), part]);

// dotted joins what there is by dots.
export const dotted = (...parts) => parts.filter(Boolean).map((part, i) => (i ? [' · ', part] : part));

export function commitLink(links, id) {
  if (!id) return null;
  const code = h('code', { title: id }, short(id));
  return links && links.commit ? h('a', { href: links.commit.replace('{}', encodeURIComponent(id)),
    rel: 'noreferrer' }, code) : code;
}

export function phaseOf(phase, held) {
  return [h('span', { class: 'phase', 'data-phase': phase }, (phases[phase] || '?') + ' ' + phase),
    held ? h('span', { class: 'held' }, held) : null];
}

// say sets a text only if it is new: screen readers repeat what is set.
const say = (id, text) => { if ($(id).textContent !== text) $(id).textContent = text; };
export const linked = (state, text) => { $('link').dataset.state = state; say('link', text); };

export const lost = 'connection lost, trying again';

// live keeps a stream open while the page can be seen, and says how it is.
// Browsers allow six connections to a host: hidden tabs give theirs back.
export function live(query, handlers) {
  if (exported) {
    handlers[query.app ? 'app' : 'reset'](exported.answers['/api/v1/events?' + new URLSearchParams(query)]);
    return;
  }
  let source = null;
  let last = '';
  const open = () => {
    if (source) return;
    const q = new URLSearchParams(query);
    if (last) q.set('since', last);
    source = new EventSource('/api/v1/events?' + q);
    source.onopen = () => linked('live', 'live');
    source.onerror = () => {
      linked('lost', lost);
      if (source && source.readyState === EventSource.CLOSED) { close(); setTimeout(open, 3000); }
    };
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (e) => {
        const data = JSON.parse(e.data);
        last = e.lastEventId;
        setNow(data.now);
        handle(data.what);
      });
    }
  };
  const close = () => { if (source) { source.close(); source = null; } };
  document.addEventListener('visibilitychange', () => (document.hidden ? close() : open()));
  addEventListener('pagehide', close);
  addEventListener('pageshow', open);
  open();
}

export function note(text) {
  $('note').hidden = !text;
  say('note', text || '');
}

// ask sends a request and returns its JSON; what the server says is the error.
export async function ask(method, path, body, headers) {
  if (exported) return exported.answers[path];
  const response = await fetch(path, {
    method, headers: { ...(body ? { 'Content-Type': 'application/json' } : {}), ...headers },
      body: body && JSON.stringify(body),
  });
  let data = {};
  try { data = await response.json(); } catch { /* said below */ }
  if (!response.ok) throw new Error(data.error || 'the server answers ' + response.status);
  return data;
}

// me is who is signed in, and what they may do with an app.
export async function me(app) {
  if (exported) return { may: [] };
  const who = await ask('GET', '/api/v1/me' + (app ? '?app=' + encodeURIComponent(app) : ''));
  if (!who.actions) return who;
  $('signin-oidc').hidden = !who.oidc;
  $('who').replaceChildren(...(who.name
    ? [h('span', { title: who.email }, who.name), h('button', { type: 'button', class: 'quiet',
      onclick: async () => { await ask('DELETE', '/api/v1/session', {}, {}); location.reload(); } }, 'Sign out')]
    : [h('button', { type: 'button', id: 'signin-open', onclick: () => $('signin').showModal() }, 'Sign in')]));
  return who;
}

$('signin-form')?.addEventListener('submit', async (e) => {
  e.preventDefault();
  $('signin-error').textContent = '';
  try {
    await ask('POST', '/api/v1/session', { token: $('token').value });
    location.reload();
  } catch (err) {
    $('signin-error').textContent = err.message;
  }
});

for (const button of document.querySelectorAll('[data-close]')) button.addEventListener('click',
  () => button.closest('dialog').close());
$('help-open').addEventListener('click', () => $('help').showModal());

// keys calls what belongs to a key, unless somebody is writing.
export function keys(table) {
  document.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return;
    const writing = e.target.matches('input, select, textarea');
    if (writing && e.key !== 'Escape' && !(e.target.id === 'q' && (e.key === 'Enter'
      || e.key === 'ArrowDown'))) return;
    const act = e.key === '?' ? () => $('help').showModal() : table[e.key];
    if (act && act(e) !== false) e.preventDefault();
  });
}

// store keeps a word for this tab, and lasting keeps it in this browser; some browsers forbid that.
const keeper = (place) => ({
  set(key, value) { try { place().setItem(key, value); } catch { /* not kept */ } },
  get(key) { try { return place().getItem(key); } catch { return null; } },
});
export const store = keeper(() => sessionStorage);
export const lasting = keeper(() => localStorage);

// remember puts the chosen filters into the page's address. Some browsers forbid that for files.
export function remember(filters) {
  try { history.replaceState(null, '', location.pathname + (filters.size ? '?' + filters : '')); } catch { /* not kept */ }
  store.set('fleet', location.pathname + location.search);
}
