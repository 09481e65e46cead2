'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const svgs = all('#stage svg');
const views = data.steps.map(() => null); // pan and zoom of each step, {x, y, k}; null until it is first shown
const FAR = 0.45, SPECKS = 0.2; // below these scales a box shows its title only, its block's colour only
let current = 0, list = 'launches', chosen = '', untouched = true;

window.addEventListener('error', (event) => { document.body.dataset.error = event.message; });

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// ---- the drawing: one svg a step, moved by its view

function show(step) {
  current = step;
  svgs.forEach((svg, k) => { svg.toggleAttribute('hidden', k !== step); });
  all('#steps button').forEach((button, k) => button.classList.toggle('on', k === step));
  if (!views[step]) reset();
  move();
  fill();
  timeline();
}

function reset(whole = false) {
  const { width, height } = data.steps[current], stage = byId('stage');
  const k = Math.min(stage.clientWidth / width, stage.clientHeight / height, 1.15);
  views[current] = k >= FAR || whole
    ? { k, x: (stage.clientWidth - width * k) / 2, y: (stage.clientHeight - height * k) / 2 }
    : { k: 0.8, x: 0, y: 0 };
}

function move() {
  const view = views[current], svg = svgs[current];
  svg.firstElementChild.setAttribute('transform', `translate(${view.x} ${view.y}) scale(${view.k})`);
  svg.classList.toggle('far', view.k < FAR);
  svg.classList.toggle('specks', view.k < SPECKS);
  overview();
}

function hands(view) {
  untouched = false;
  views[current] = view;
  move();
}

function zoom(factor, x = byId('stage').clientWidth / 2, y = byId('stage').clientHeight / 2) {
  const view = views[current], k = Math.min(4, Math.max(0.02, view.k * factor));
  hands({ k, x: x - (x - view.x) * k / view.k, y: y - (y - view.y) * k / view.k });
}

function centre(number) {
  const node = data.steps[current].nodes[number], stage = byId('stage'), view = views[current];
  const k = view.k < FAR ? 0.8 : view.k;
  const left = node.x * k + view.x, top = node.y * k + view.y;
  const inside = k === view.k && left > 0 && top > 0 && left + node.w * k < stage.clientWidth
    && top + node.h * k < stage.clientHeight;
  if (!inside) {
    hands({ k, x: stage.clientWidth / 2 - (node.x + node.w / 2) * k, y: stage.clientHeight / 2 - (node.y + node.h / 2) * k });
  }
}

function overview() {
  const canvas = byId('map'), step = data.steps[current], draw = canvas.getContext('2d'), stage = byId('stage'), view = views[current];
  const k = Math.min(canvas.width / step.width, canvas.height / step.height);
  canvas.hidden = stage.clientWidth / view.k > step.width && stage.clientHeight / view.k > step.height;
  draw.clearRect(0, 0, canvas.width, canvas.height);
  step.nodes.forEach((node) => {
    draw.fillStyle = chosen === `device:${node.name}` ? '#b4521e' : '#8fa3b5';
    draw.fillRect(node.x * k, node.y * k, Math.max(1.5, node.w * k), Math.max(1, node.h * k));
  });
  draw.strokeStyle = '#b4521e';
  draw.strokeRect(-view.x / view.k * k, -view.y / view.k * k, stage.clientWidth / view.k * k, stage.clientHeight / view.k * k);
}

// ---- what is chosen: "device:…", "launch:…", "slot:…", "tensor:…", "kernel:…" or "edge:<step>:<number>"

function choose(key, follow = true) {
  const step = stepOf(key);
  if (step >= 0 && step !== current) show(step);
  chosen = key;
  mark(follow);
  detail();
  all('#list a').forEach((a) => a.classList.toggle('on', a.dataset.key === key));
  all('#timeline .a').forEach((a) => a.classList.toggle('on', `tensor:${a.dataset.name}` === key));
  try { history.replaceState(null, '', key ? `#${encodeURIComponent(key)}` : '#'); } catch { /* not everywhere */ }
}

function stepOf(key) {
  if (key.startsWith('edge:')) return Number(key.split(':')[1]);
  if (touches(key, current).length) return current;
  return data.steps.findIndex((_, step) => touches(key, step).length);
}

// The launches of a step that a chosen thing is, or that touch it, as [number, 'on' | 'reads' | 'writes'].
function touches(key, step) {
  const [kind, name] = [key.slice(0, key.indexOf(':')), key.slice(key.indexOf(':') + 1)];
  const { nodes } = data.steps[step], found = [];
  if (kind === 'slot' || kind === 'tensor') {
    return (data.touches[key]?.[data.steps[step].name] ?? []).map(([n, writes]) => [n, writes ? 'writes' : 'reads']);
  }
  nodes.forEach((node, n) => {
    if ((kind === 'device' && node.name === name) || (kind === 'launch' && node.launches.includes(name))
      || (kind === 'kernel' && node.kernels.includes(name))) found.push([n, 'on']);
  });
  return found;
}

function mark(follow) {
  const svg = svgs[current], { links } = data.steps[current];
  all('.on, .reads, .writes, .near', svg).forEach((node) => node.classList.remove('on', 'reads', 'writes', 'near'));
  const boxes = all('.n', svg), edges = all('.e', svg);
  const found = chosen.startsWith('edge:') ? [] : touches(chosen, current);
  const near = new Set(found.map(([n]) => n));
  if (chosen.startsWith('edge:')) {
    const k = Number(chosen.split(':')[2]);
    edges[k].classList.add('near');
    near.add(links[k].before).add(links[k].after);
  } else if (found.some(([, how]) => how === 'on')) {
    found.forEach(([n]) => { reach(n, links, 'before', 'after').forEach((m) => near.add(m)); reach(n, links, 'after', 'before').forEach((m) => near.add(m)); });
    links.forEach((link, k) => {
      const own = found.some(([n]) => n === link.before || n === link.after);
      edges[k].classList.toggle('near', own);
    });
  }
  found.forEach(([n, how]) => boxes[n].classList.add(how));
  near.forEach((n) => boxes[n].classList.add('near'));
  svg.classList.toggle('dim', near.size > 0);
  if (follow && near.size) centre([...near][0]);
  now(found.map(([n]) => n));
  overview();
}

// All launches that `start` leads to along links from `from` to `to`.
function reach(start, links, from, to) {
  const next = new Map();
  links.forEach((link) => next.set(link[from], [...(next.get(link[from]) ?? []), link[to]]));
  const seen = new Set([start]), queue = [start];
  while (queue.length) for (const n of next.get(queue.pop()) ?? []) if (!seen.has(n)) { seen.add(n); queue.push(n); }
  return seen;
}

function detail() {
  const panel = byId('detail');
  panel.replaceChildren();
  panel.scrollTop = 0;
  if (chosen.startsWith('edge:')) return panel.append(...edgeDetail());
  const facts = data.facts[chosen];
  if (!facts) return panel.append(make('p', { class: 'soft' }, 'Choose a launch, a slot or a tensor.'));
  const rows = make('dl');
  for (const [label, values] of facts.rows) {
    rows.append(make('dt', {}, label), make('dd', {}, ...values.map((value) => make('div', {}, ...linked(value)))));
  }
  panel.append(make('h2', {}, facts.title), rows);
  const files = [...(facts.at ? [facts.at] : []), ...facts.emitted.map((path) => [path, 0])];
  if (files.length) panel.append(...sources(files));
  panel.querySelector('#files button')?.click(); // once it has a place, so that it can scroll
}

function edgeDetail() {
  const [, step, k] = chosen.split(':').map(Number), link = data.steps[step].links[k], { nodes } = data.steps[step];
  const rows = make('dl');
  for (const [before, after, kind, reason] of link.hazards) {
    rows.append(make('dt', {}, kind), make('dd', {}, ...linked(`${before} → ${after}`), make('div', {}, ...linked(reason))));
  }
  if (!link.hazards.length) rows.append(make('dt', {}, link.kind), make('dd', {}, ...linked(link.reason)));
  return [make('h2', {}, ...linked(`${nodes[link.before].name} → ${nodes[link.after].name}`)), rows];
}

// A text with every known name as a link.
function linked(text) {
  return text.split(/([A-Za-z_][\w.]*\w)/).map((part, k) => {
    const key = k % 2 && data.names[part];
    if (!key || key === chosen) return part;
    const link = make('a', {}, part);
    link.addEventListener('click', () => choose(key));
    return link;
  });
}

function sources(files) {
  const buttons = make('div', { id: 'files' }), text = make('pre', { id: 'source' });
  files.filter(([path]) => path in data.sources).forEach(([path, line]) => {
    const button = make('button', {}, path.split('/').slice(-2).join('/') + (line ? `:${line}` : ''));
    button.addEventListener('click', () => {
      all('button', buttons).forEach((other) => other.classList.toggle('on', other === button));
      const lines = data.sources[path].split('\n');
      text.replaceChildren(...lines.map((row, n) => make('div', { 'data-l': n + 1, ...(n + 1 === line ? { class: 'here' } : {}) }, row || ' ')));
      const here = text.querySelector('.here');
      text.scrollTop = here ? here.offsetTop - text.offsetTop - 60 : 0;
    });
    buttons.append(button);
  });
  return [buttons, text];
}

// ---- lists with search

function fill() {
  const wanted = byId('search').value.trim().toLowerCase(), rows = [];
  all('#tabs button').forEach((button) => button.classList.toggle('on', button.dataset.list === list));
  const add = (key, name, note, sub = false) => {
    const row = make('a', { role: 'listitem', 'data-key': key, title: name, class: (sub ? 'sub' : '') + (key === chosen ? ' on' : '') },
      make('span', {}, name), make('span', { class: 'soft' }, note));
    row.addEventListener('click', () => choose(key));
    rows.push(row);
  };
  const fits = (...texts) => texts.some((text) => text.toLowerCase().includes(wanted));
  if (list === 'launches') {
    for (const node of data.steps[current].nodes) {
      const inside = node.launches.length > 1 ? node.launches.filter((name) => fits(name)) : [];
      if (!fits(node.name, ...node.kernels) && !inside.length) continue;
      add(`device:${node.name}`, node.title, `${node.us.toFixed(1)} µs`);
      inside.forEach((name) => add(`launch:${name}`, name.slice(data.steps[current].name.length + 1), '', true));
    }
  } else {
    for (const [key, name, note, text] of data[list]) if (fits(name, text)) add(key, name, note);
  }
  byId('list').replaceChildren(...(rows.length ? rows : [make('p', { class: 'soft', style: 'padding:0 .6rem' }, 'nothing of that name')]));
}

// ---- the arena: a column a launch, bytes upwards

function timeline() {
  const panel = byId('timeline'), step = data.steps[current], scaled = byId('scale').checked;
  const edges = [...new Set(step.arena.flatMap(([, offset, bytes]) => [offset, offset + bytes]))].sort((a, b) => a - b);
  const rank = new Map(edges.map((byte, k) => [byte, k]));
  const place = (byte) => scaled ? byte / Math.max(1, data.arena) : rank.get(byte) / Math.max(1, edges.length - 1);
  const percent = (share) => `${100 * share}%`, wide = 1 / step.nodes.length, high = panel.clientHeight;
  panel.replaceChildren(make('div', { class: 'now' }), ...step.arena.map(([name, offset, bytes, first, last], k) => {
    const low = place(offset), size = Math.max(2 / high, place(offset + bytes) - low);
    const bar = make('div', { class: `tensor:${name}` === chosen ? 'a on' : 'a', 'data-name': name, title: `${name}: ${bytes.toLocaleString('en')} bytes at `
      + `${offset.toLocaleString('en')}, ${step.nodes[first].title} to ${step.nodes[last].title}` }, size * high > 11 ? name : '');
    Object.assign(bar.style, { left: percent(first * wide), width: percent((last - first + 1) * wide), bottom: percent(low),
      height: percent(size), background: `hsl(${(k * 47) % 360} 45% 74%)` });
    if (`tensor:${name}` in data.facts) bar.addEventListener('click', () => choose(`tensor:${name}`));
    return bar;
  }));
  byId('arena-note').textContent = `${step.arena.length} buffers in ${data.arena.toLocaleString('en')} bytes; without sharing `
    + `${step.arena.reduce((sum, row) => sum + row[2], 0).toLocaleString('en')}`;
  byId('summary').textContent = `${step.declared} launches declared, ${step.nodes.length} on the device`;
}

function now(numbers) {
  const bar = document.querySelector('#timeline .now'), count = data.steps[current].nodes.length;
  bar.hidden = !numbers.length;
  bar.style.left = `${100 * Math.min(...numbers) / count}%`;
  bar.style.width = `${100 * (Math.max(...numbers) - Math.min(...numbers) + 1) / count}%`;
}

// ---- hands

svgs.forEach((svg, step) => {
  let from = null, moved = false;
  svg.addEventListener('wheel', (event) => { event.preventDefault(); zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY); }, { passive: false });
  svg.addEventListener('pointerdown', (event) => { from = [event.clientX, event.clientY]; moved = false; });
  svg.addEventListener('pointermove', (event) => {
    if (!from || !event.buttons) return;
    if (!moved && Math.hypot(event.clientX - from[0], event.clientY - from[1]) < 4) return;
    if (!moved) svg.setPointerCapture(event.pointerId);
    moved = true;
    svg.classList.add('drag');
    hands({ ...views[step], x: views[step].x + event.clientX - from[0], y: views[step].y + event.clientY - from[1] });
    from = [event.clientX, event.clientY];
  });
  svg.addEventListener('pointerup', (event) => {
    svg.classList.remove('drag');
    if (moved) return void (from = null);
    from = null;
    const box = event.target.closest('.n'), edge = event.target.closest('.e');
    if (box) choose(`device:${data.steps[step].nodes[box.dataset.n].name}`, false);
    else if (edge) choose(`edge:${step}:${edge.dataset.e}`, false);
    else choose('', false);
  });
});
byId('map').addEventListener('click', (event) => {
  const step = data.steps[current], canvas = byId('map'), stage = byId('stage'), view = views[current];
  const k = Math.min(canvas.width / step.width, canvas.height / step.height);
  hands({ k: view.k, x: stage.clientWidth / 2 - event.offsetX / k * view.k, y: stage.clientHeight / 2 - event.offsetY / k * view.k });
});
all('#steps button').forEach((button, k) => button.addEventListener('click', () => { show(k); choose('', false); }));
all('#tabs button').forEach((button) => button.addEventListener('click', () => { list = button.dataset.list; fill(); }));
all('#kinds input').forEach((box) => box.addEventListener('change', () => {
  const shown = new Set(all('#kinds input').filter((b) => b.checked).map((b) => b.dataset.kind));
  svgs.forEach((svg, step) => all('.e', svg).forEach((edge, k) => {
    edge.classList.toggle('off', !data.steps[step].links[k].kinds.some((kind) => shown.has(kind)));
  }));
}));
byId('search').addEventListener('input', fill);
byId('search').addEventListener('keydown', (event) => { if (event.key === 'Enter') document.querySelector('#list a')?.click(); });
byId('scale').addEventListener('change', () => { timeline(); mark(false); });
byId('fit').addEventListener('click', () => { reset(true); move(); });
byId('in').addEventListener('click', () => zoom(1.3));
byId('out').addEventListener('click', () => zoom(1 / 1.3));
document.addEventListener('keydown', (event) => {
  if (event.target === byId('search') && event.key !== 'Escape') return;
  if (event.key === '/') { event.preventDefault(); byId('search').focus(); }
  if (event.key === 'f') { reset(true); move(); }
  if (event.key === 'Escape') { byId('search').blur(); choose('', false); }
});
window.addEventListener('resize', () => { if (untouched) reset(); move(); });
window.addEventListener('hashchange', () => arrive());

function arrive() {
  const key = decodeURIComponent(location.hash.slice(1));
  const [, step, link] = key.match(/^edge:(\d+):(\d+)$/) ?? [];
  const named = key in data.facts || data.steps[step]?.links[link] ? key : data.names[key];
  if (named && named !== chosen) {
    list = named.startsWith('slot:') ? 'slots' : named.startsWith('tensor:') ? 'tensors' : 'launches';
    fill();
    choose(named);
  }
}

show(data.first);
arrive();
document.body.dataset.ready = 'yes';
