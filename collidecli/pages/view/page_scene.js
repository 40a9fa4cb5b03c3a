// Draws frames by viser's renderer: the messages that a server of viser would send are put into the queue of its client.
// `window.__viserMutable` is the seam that a later viser may change; a test in a browser watches it.
const NO_PAIR = 0xffff;
const TYPES = { float32: Float32Array, int32: Int32Array, uint16: Uint16Array, int16: Int16Array, int8: Int8Array, uint8: Uint8Array };

// Arrays by name, of their compressed bytes.
const inflate = async ({ arrays, bytes: text }) => {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = await new Response(stream).arrayBuffer();
  const held = {};
  let at = 0;
  for (const [name, type, size] of arrays) {
    held[name] = new TYPES[type](bytes, at, size);
    at += held[name].byteLength;
  }
  return held;
};

// The arrays of a world; those with differences between frames or contacts are summed.
const unpack = async (world) => {
  const held = await inflate(world);
  const sum = (values, length) => {
    for (let n = 1; n < values.length; n += 1) if (n % length) values[n] += values[n - 1];
  };
  const frames = held.start.length - 1;
  sum(held.position, frames);
  sum(held.rotation, frames);
  sum(held.point, held.depth.length);
  sum(held.corner ?? [], (held.corner?.length ?? 0) / 3);
  sum(held.self_point ?? [], (held.self_point?.length ?? 0) / 3);
  return held;
};

class Scene {
  constructor(data, viser) {
    this.data = data;
    this.viser = viser;
    this.camera = null;
    this.placed = false;
    this.first = this.farther;
    this.clicked = () => {};
    this.drawn = null;
    this.shown = new Map();
    this.parts = [];
    viser.sendMessage = (message) => this.received(message);
    for (const group of Object.values(data.groups).flat().filter((one) => !one.visual))
      this.send({
        type: "SetSceneNodeClickBindingsMessage",
        name: group.name,
        bindings: [{ button: "left", modifier: null }],
      });
  }

  send(...messages) {
    for (const message of messages) this.viser.messageQueue.push({ owner: "", ...message });
    this.viser.requestRender();
  }

  update(name, updates) {
    this.send({ type: "SceneNodeUpdateMessage", name, updates });
  }

  visible(name, visible) {
    if (this.shown.get(name) === visible) return;
    this.shown.set(name, visible);
    this.send({ type: "SetSceneNodeVisibilityMessage", name, visible });
  }

  // What the client sends to a server: the pose of its camera, and clicks on shapes.
  received(message) {
    if (message.type === "ViewerCameraMessage") {
      this.camera = message;
      if (!this.placed) this.place();
      this.moved();
    } else if (message.type === "SceneNodeClickMessage" && message.instance_index !== null) {
      const group = Object.values(this.data.groups).flat().find((one) => one.name === message.name);
      if (group) this.clicked(this.data.paths[group.rows[message.instance_index]]);
    }
  }

  // How much farther away the camera must be in a window that is narrower than high, so that its width has what its height would have.
  get farther() {
    const half = this.data.field_of_view / 2;
    const aspect = innerWidth / innerHeight;
    return aspect < 1 ? Math.sin(half) / Math.sin(Math.atan(aspect * Math.tan(half))) : 1;
  }

  // Distance of the camera from what it looks at [m].
  get away() {
    const { position, look_at: at } = this.camera;
    return Math.hypot(...position.map((value, n) => value - at[n]));
  }

  // Moves the first camera, which is for a wide window, as far away as this window needs. The client may first tell a camera of its own, or the position of that one with the target of the first.
  place() {
    if (Math.abs(this.away / this.data.distance - 1) > 1e-3) return;
    this.placed = true;
    if (this.first === 1) return;
    const { position, look_at: at } = this.camera;
    const moved = position.map((value, k) => at[k] + this.first * (value - at[k]));
    this.send({ type: "SetCameraPositionMessage", position: moved, initial: false });
  }

  // Distance of the camera relative to its first one, in steps of 10 %, as each is drawn.
  get distance() {
    if (!this.camera) return 1;
    const away = this.away / (this.first * this.data.distance);
    return 1.1 ** Math.round(Math.log(Math.max(away, 1e-4)) / Math.log(1.1));
  }

  moved() {
    if (this.drawn && this.distance !== this.drawn.distance) this.show(this.drawn.world, this.drawn.frame, this.drawn.look);
  }

  travel(world, frame, look) {
    return [0, 1, 2].map((axis) => (look.follow ? world.held.travel[3 * frame + axis] : 0));
  }

  show(world, frame, look) {
    const ended = Boolean(world.ended[frame]);
    const travel = this.travel(world, frame, look);
    this.drawn = { world, frame, look, distance: this.distance };
    for (const [template, groups] of Object.entries(this.data.groups))
      for (const group of groups)
        this.visible(group.name, Number(template) === world.template && !ended && (look.visuals || !group.visual));
    this.showShapes(world, frame, look, travel);
    this.showFloor(travel);
    const counts = this.parts.map((part) => part.show(world, frame, look, travel));
    return Object.assign(this.showContacts(world, frame, look, travel), ...counts);
  }

  // Positions and rotations of the shapes of a world, of all of its groups.
  poses(world, frame) {
    const { held } = world;
    const frames = this.data.frames.length;
    const poses = held.rest.slice();
    held.moving.forEach((row, n) => {
      for (let k = 0; k < 3; k += 1) poses[7 * row + k] = held.position[(3 * n + k) * frames + frame] * world.position_step;
      for (let k = 0; k < 4; k += 1) poses[7 * row + 3 + k] = held.rotation[(4 * n + k) * frames + frame] / 32767;
    });
    return poses;
  }

  showShapes(world, frame, look, travel) {
    const poses = this.poses(world, frame);
    const key = JSON.stringify([look.pair, look.opacity, look.visuals, look.map]);
    let first = 0;
    for (const group of this.data.groups[world.template] ?? []) {
      const count = group.rows.length;
      const positions = new Float32Array(3 * count);
      const wxyzs = new Float32Array(4 * count);
      for (let n = 0; n < count; n += 1) {
        const at = 7 * (first + n);
        for (let k = 0; k < 3; k += 1) positions[3 * n + k] = poses[at + k] - travel[k];
        const length = Math.hypot(poses[at + 3], poses[at + 4], poses[at + 5], poses[at + 6]) || 1;
        for (let k = 0; k < 4; k += 1) wxyzs[4 * n + k] = poses[at + 3 + ((k + 3) % 4)] / length;
      }
      first += count;
      const looks = group.look === key ? {} : this.lookOf(group, look);
      group.look = key;
      this.update(group.name, { batched_positions: positions, batched_wxyzs: wxyzs, ...looks });
    }
  }

  // Colours and opacities: a selected pair has two colours of its own, and all other shapes are faint.
  lookOf(group, look) {
    const colours = Uint8Array.from(group.colours);
    const behind = look.visuals && !group.visual ? this.data.behind_visuals : 1;
    const opacities = Float32Array.from(group.opacity, (relative) => {
      const opacity = behind * relative * look.opacity;
      return look.pair ? Math.min(opacity, this.data.faint) : opacity;
    });
    (look.pair ?? []).forEach((shape, side) => {
      const n = group.rows.indexOf(shape);
      if (n < 0) return;
      colours.set(this.data.picked[side], 3 * n);
      opacities[n] = Math.max(look.opacity, this.data.picked_opacity);
    });
    if (this.data.map && look.map)
      group.rows.forEach((row, n) => {
        if (this.data.map.rows.includes(row)) opacities[n] = 0;
      });
    return { batched_colors: colours, batched_opacities: opacities };
  }

  // Translucent shapes hide nothing: three.js draws a shape behind one that was drawn before only without depth.
  seeThrough(look) {
    for (const group of Object.values(this.data.groups).flat())
      this.viser.nodeRefFromName?.[group.name]?.traverse((node) => {
        if (node.isInstancedMesh2) node.material.depthWrite = !look.pair && (group.visual || (look.opacity >= 1 && !(this.data.map && look.map)));
      });
  }

  // The grid is under the camera, moved by whole lines.
  showFloor(travel) {
    const { up, cell, floor, origin, radius } = this.data;
    const remainder = (value) => ((value % cell) + cell) % cell;
    const position = travel.map((moved, axis) => (axis === up ? floor + 1e-3 * radius : remainder(-origin[axis] - moved)));
    this.send({ type: "SetPositionMessage", name: "/floor", position });
  }

  showContacts(world, frame, look, travel) {
    const { held } = world;
    const count = held.depth.length;
    // Points of a second set are smaller: of two at one place the first remains visible around it.
    const found = { touching: [], gap: [], ...(this.data.sizes.second && { touching_second: [], gap_second: [] }) };
    const nameOf = (n, name) => (held.second?.[n] ? `${name}_second` : name);
    let near = 0;
    for (let n = held.start[frame]; n < held.start[frame + 1]; n += 1) {
      const wanted = !look.only || !look.pair || held.pair[n] === look.number;
      if (!held.depth[n]) near += 1;
      if (held.depth[n] && wanted) found[nameOf(n, "touching")].push(n);
      if (!held.depth[n] && wanted && look.gaps) found[nameOf(n, "gap")].push(n);
    }
    const size = this.data.unit * look.size * this.distance;
    const point = (n) => travel.map((moved, k) => held.point[k * count + n] * world.contact_step - moved);
    const colour = (n) => held.second?.[n] ? this.data.against : (held.depth[n] ? this.data.depths.slice(3 * (held.depth[n] - 1), 3 * held.depth[n]) : this.data.gap);
    for (const name of Object.keys(found)) {
      const [kind, second] = name.split("_");
      const rows = found[name];
      this.visible(`/contacts/${name}`, rows.length > 0);
      if (!rows.length) continue;
      const points = Float32Array.from(rows.flatMap(point));
      this.update(`/contacts/${name}`, { points, colors: Uint8Array.from(rows.flatMap(colour)), point_size: this.data.sizes[kind] * (second ? this.data.sizes.second : 1) * size });
    }
    this.showArrows(Object.values(found).flat(), held, look, this.data.sizes.arrow * size, point, colour);
    return { touching: held.start[frame + 1] - held.start[frame] - near, near };
  }

  showArrows(rows, held, look, length, point, colour) {
    this.visible("/contacts/normals", look.arrows && rows.length > 0);
    if (!look.arrows || !rows.length) return;
    const count = held.depth.length;
    const points = new Float32Array(6 * rows.length);
    rows.forEach((row, n) => {
      const begin = point(row);
      points.set(begin, 6 * n);
      points.set(begin.map((value, k) => value + (length * held.normal[k * count + row]) / 127), 6 * n + 3);
    });
    const colors = Uint8Array.from(rows.flatMap(colour));
    const dimensions = Object.fromEntries(Object.entries(this.data.arrow).map(([name, share]) => [name, share * length]));
    this.update("/contacts/normals", { points, colors, ...dimensions });
  }

  // Moves the camera to the contacts of a pair in a frame, by default the deepest, in its direction.
  focus(world, pair, look, frame = pair.deepest) {
    const { held } = world;
    const travel = this.travel(world, frame, look);
    const rows = [];
    for (let n = held.start[frame]; n < held.start[frame + 1]; n += 1) if (held.pair[n] === look.number) rows.push(n);
    const count = held.depth.length;
    const mean = (k) => (world.contact_step * rows.reduce((sum, n) => sum + held.point[k * count + n], 0)) / rows.length;
    const is_deepest = frame === pair.deepest || !rows.length;
    const center = travel.map((moved, k) => (is_deepest ? pair.focus[k] : mean(k)) - moved);
    const from = this.camera ?? { position: [-1, -1, 1], look_at: [0, 0, 0] };
    const away = from.position.map((value, k) => value - from.look_at[k]);
    const length = Math.hypot(...away) || 1;
    const distance = this.farther * pair.focus[3];
    const position = center.map((value, k) => value + (distance * away[k]) / length);
    this.placed = true;
    this.send(
      { type: "SetCameraPositionMessage", position, initial: false },
      { type: "SetCameraLookAtMessage", look_at: center, initial: false },
    );
  }
}
