// The controls of the page.
const get = (name) => document.getElementById(`collide-${name}`);
const data = JSON.parse(get("data").textContent);
const { worlds, frames, times } = data;
const last = frames.length - 1;
const look = { pair: null, number: -1, opacity: data.opacity, size: 1, gaps: true, arrows: true, only: false, follow: data.follows, visuals: true, surfaces: true, particles: true, self_contacts: true, map: true };
let scene = null;
let world = worlds[0];
let pairs = [];
let pair = null;
let frame = 0;
let playing = false;
let speed = 1;

if (innerWidth < 600) document.getElementById("collide").open = false;

const fill = (select, names) => select.replaceChildren(...names.map((name, n) => new Option(name, n)));

const mark = (at, width, colour) => {
  const one = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  one.setAttribute("x", `${(100 * at) / frames.length}%`);
  one.setAttribute("width", `${Math.max(0.4, (100 * width) / frames.length)}%`);
  one.setAttribute("height", "100%");
  one.setAttribute("fill", colour);
  return one;
};

const showMarks = () => {
  const at = pair?.at ?? [];
  const ended = world.ended.flatMap((beyond, n) => (beyond ? [mark(n, 1, "#b4bcc6")] : []));
  const touches = at.map(([first, , end]) => mark(first, end + 1 - first, "#e2372a"));
  const deepest = at.map(([, one]) => mark(one, 1, "#920a46"));
  get("marks").replaceChildren(...ended, ...touches, ...deepest, mark(frame + 0.5, 0, "#1b2530"));
};

const show = () => {
  if (!scene || !world.held) return;
  const { touching, near, surfaces, selves, mapped } = scene.show(world, frame, look);
  get("frame").value = frame;
  get("play").textContent = playing ? "Pause" : "Play";
  const touches = world.pairs.filter(({ at }) => at.some(([first, , end]) => first <= frame && frame <= end)).length;
  const pairs = `${touches} listed pair${touches === 1 ? " touches" : "s touch"}`;
  const contacts = data.touch_only ? pairs : `${touching} contact${touching === 1 ? "" : "s"} touching${near ? `, ${near} in the gap` : ""}`;
  const counted = (number, noun) => (number === undefined ? "" : ` · ${number} ${noun}${number === 1 ? "" : "s"}`);
  const more = counted(surfaces, "surface") + counted(selves, "self-contact") + counted(mapped, "touching point") + (mapped === undefined ? "" : " of the map");
  const state = world.ended[frame] ? world.ended_words : contacts + more;
  const time = `${Number(data.clock[frame].toPrecision(4))} s`;
  get("now").textContent = `frame ${frames[frame]} (${frames[0]} to ${frames[last]}) · ${time} · ${state}`;
  showMarks();
};

const go = (to, play = false) => {
  playing = play;
  frame = Math.min(Math.max(0, to), last);
  show();
};

// Plays the frames that are due; it stops at the last frame, and at the end of a demonstration.
let before = 0;
let due = 0;
const tick = (now) => {
  scene.seeThrough(look);
  const passed = Math.min((now - before) / 1000, 0.25);
  before = now;
  if (playing) {
    due += passed * speed;
    let next = frame;
    while (next < last && times[next + 1] - times[frame] <= due) next += 1;
    const end = world.ended.findIndex((beyond, n) => n > frame && n <= next && beyond && !world.ended[frame]);
    if (end > 0) next = end - 1;
    if (next !== frame || next === last || end > 0) {
      due -= times[next] - times[frame];
      go(next, next < last && end < 0);
    }
  }
  requestAnimationFrame(tick);
};

const play = () => {
  due = 0;
  if (!playing && (frame === last || world.ended[frame + 1])) frame = Math.max(0, world.ended.indexOf(0));
  go(frame, !playing);
};

const pick = (number) => {
  pair = number === null ? null : world.pairs[number];
  Object.assign(look, { pair: pair?.shapes ?? null, number: number ?? -1 });
  get("picked").hidden = !pair;
  if (pair) {
    get("words").replaceChildren(
      ...pair.paths.map((path, side) => {
        const line = document.createElement("div");
        const dot = document.createElement("span");
        dot.className = "dot";
        // A particle object keeps its colour.
        dot.style.background = `rgb(${pair.shapes[side] < 0 ? data.particle_colour : data.picked[side]})`;
        line.append(dot, path);
        return line;
      }),
      pair.words,
    );
    fill(get("touch"), pair.touches);
    if (scene && world.held) scene.focus(world, pair, look);
    go(pair.at[0][0]);
  } else show();
};

// A pattern with *, ? or [ ] matches a whole path, and so does a regular expression after re:,
// other text a part of it. An unfinished expression matches nothing.
const matcher = (text) => {
  if (text.startsWith("re:")) {
    try {
      const expression = new RegExp(`^(?:${text.slice(3)})$`, "u");
      return (path) => expression.test(path);
    } catch {
      return () => false;
    }
  }
  if (!/[*?[]/.test(text)) return (path) => path.includes(text);
  const parts = text.match(/\[!?\]?[^\]]*\]|[^]/g).map((part) => {
    if (part === "*") return ".*";
    if (part === "?") return ".";
    if (part.length > 1) return part.replace(/\\/g, "\\\\").replace(/^\[!/, "[^");
    return part.replace(/[\\^$.|?*+()[\]{}]/g, "\\$&");
  });
  const pattern = new RegExp(`^${parts.join("")}$`, "s");
  return (path) => pattern.test(path);
};

const list = () => {
  const text = get("find").value.trim();
  const matches = matcher(text);
  pairs = world.pairs.flatMap((one, n) => (one.paths.some(matches) ? [n] : []));
  fill(get("pair"), ["all pairs", ...pairs.map((n) => world.pairs[n].label)]);
  get("more").textContent = text ? `${pairs.length} of ${world.pairs.length} listed pairs match.` : world.summary;
  pick(null);
};

const enter = async (number) => {
  const wanted = worlds[number];
  wanted.held ??= await unpack(wanted);
  world = wanted;
  list();
};

// Shows what the address names: #world=NUMBER&pair=PATH&pair=PATH&frame=NUMBER.
const follow = async () => {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const number = worlds.findIndex((one) => String(one.number) === wanted.get("world"));
  if (number > 0) {
    get("world").value = number;
    await enter(number);
  }
  const paths = wanted.getAll("pair");
  const isNamed = (one) => (paths.length === 2 ? `${paths.toSorted()}` === `${one.paths.toSorted()}` : paths.every((path) => one.paths.includes(path)));
  const listed = paths.length ? world.pairs.findIndex(isNamed) : -1;
  if (listed >= 0) {
    get("find").value = "";
    list();
    get("only").checked = look.only = true;
    get("pair").value = listed + 1;
    pick(listed);
  }
  const at = frames.indexOf(Number(wanted.get("frame") ?? -1));
  if (at < 0) return;
  if (pair) scene.focus(world, pair, look, at);
  go(at);
};

const bind = (name, event, action) => get(name).addEventListener(event, () => action(get(name)));
const steps = { first: () => 0, back: () => frame - 1, on: () => frame + 1, last: () => last };
for (const button of document.querySelectorAll("#collide-steps button"))
  button.addEventListener("click", () => go(steps[button.dataset.step]()));
for (const button of document.querySelectorAll("#collide-picked [data-event]"))
  button.addEventListener("click", () => go(pair.at[get("touch").value][button.dataset.event]));
bind("frame", "input", (slider) => go(slider.valueAsNumber));
bind("play", "click", play);
bind("speed", "change", (select) => (speed = parseFloat(data.speeds[select.value])));
bind("world", "change", (select) => enter(Number(select.value)));
bind("find", "input", list);
bind("pair", "change", (select) => pick(select.value === "0" ? null : pairs[select.value - 1]));
bind("touch", "change", (select) => go(pair.at[select.value][0]));
for (const name of ["opacity", "size"])
  bind(name, "input", (slider) => {
    look[name] = slider.valueAsNumber;
    show();
  });
for (const name of ["arrows", "gaps", "only", "follow", "visuals", "surfaces", "particles", "self_contacts", "map"].filter(get))
  bind(name, "change", (box) => {
    look[name] = box.checked;
    show();
  });

fill(get("world"), worlds.map((one) => one.name));
get("world").parentElement.hidden = worlds.length < 2;
get("follow").parentElement.hidden = !data.follows;
fill(get("speed"), data.speeds);
get("speed").value = data.speeds.indexOf("1x");
get("opacity").value = look.opacity;
get("frame").max = Math.max(1, last);
for (const name of ["frame", "play"]) get(name).disabled = last < 1;

// viser's client is ready when it has the nodes of the recording.
const START_SECONDS = 60;
const began = performance.now();
const start = async () => {
  const viser = window.__viserMutable;
  if (viser?.cameraControl && window.__viserSceneTree?.getState()["/contacts/normals"]) {
    scene = new Scene(data, viser);
    scene.clicked = (path) => {
      get("find").value = path;
      list();
    };
    if (data.surfaces) scene.parts.push(new Surfaces(scene));
    if (data.particles) scene.parts.push(new Particles(scene));
    if (data.self_contacts) scene.parts.push(new SelfContacts(scene));
    if (data.map) {
      scene.parts.push(new ContactMap(scene, await inflated(data.map.triangles)));
      // Visual meshes would hide the map.
      if (get("visuals")) get("visuals").checked = look.visuals = false;
    }
    viser.sendCamera?.();
    await enter(0);
    if (world.pairs.length) go(world.pairs[0].deepest);
    await follow();
    requestAnimationFrame(tick);
  } else if (performance.now() - began > 1000 * START_SECONDS) {
    get("now").textContent = "The 3D view did not start: this browser has no WebGL 2, or the page is damaged.";
  } else setTimeout(start, 50);
};
addEventListener("hashchange", () => scene && world.held && follow());
start().catch((error) => {
  get("now").textContent = `The frames cannot be read: ${error.message}`;
});
