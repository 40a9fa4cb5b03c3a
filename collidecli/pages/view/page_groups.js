// Hydroelastic surfaces: a mesh for each colour of faces, or an arrow for the force of each surface.
class Surfaces {
  constructor(scene) {
    this.scene = scene;
    this.starts = new Map();
  }

  // First face of each surface, and first corner of each face.
  startsOf(held) {
    if (!this.starts.has(held)) {
      const from = (counts) => {
        const start = new Int32Array(counts.length + 1);
        counts.forEach((count, n) => (start[n + 1] = start[n] + count));
        return start;
      };
      this.starts.set(held, { face: from(held.face_count), corner: from(held.face_corners) });
    }
    return this.starts.get(held);
  }

  show(world, frame, look, travel) {
    const { held } = world;
    const [first, end] = [held.surface_start[frame], held.surface_start[frame + 1]];
    const rows = [];
    for (let n = first; n < end; n += 1)
      if (look.surfaces && (!look.only || !look.pair || held.surface_pair[n] === look.number)) rows.push(n);
    if (this.scene.data.surfaces.faces) this.showFaces(rows, world, travel);
    else this.showForces(rows, held, look, travel);
    return { surfaces: end - first };
  }

  showFaces(rows, world, travel) {
    const { held } = world;
    const start = this.startsOf(held);
    const count = held.corner.length / 3;
    const meshes = Array.from({ length: this.scene.data.surfaces.levels }, () => ({ vertices: [], faces: [] }));
    for (const row of rows)
      for (let face = start.face[row]; face < start.face[row + 1]; face += 1) {
        const { vertices, faces } = meshes[held.face_level[face]];
        const begin = vertices.length / 3;
        for (let at = start.corner[face]; at < start.corner[face + 1]; at += 1)
          for (let k = 0; k < 3; k += 1) vertices.push(held.corner[k * count + at] * world.contact_step - travel[k]);
        for (let n = 2; n < held.face_corners[face]; n += 1) faces.push(begin, begin + n - 1, begin + n);
      }
    meshes.forEach(({ vertices, faces }, level) => {
      const name = `/surfaces/${String(level).padStart(2, "0")}`;
      this.scene.visible(name, faces.length > 0);
      if (faces.length) this.scene.update(name, { vertices: Float32Array.from(vertices), faces: Uint32Array.from(faces) });
    });
  }

  showForces(rows, held, look, travel) {
    const { data } = this.scene;
    const name = "/surfaces/forces";
    this.scene.visible(name, rows.length > 0);
    if (!rows.length) return;
    const size = data.unit * look.size * this.scene.distance;
    const longest = (data.surfaces.length * size) / (data.surfaces.greatest || 1);
    const points = new Float32Array(6 * rows.length);
    const colors = new Uint8Array(3 * rows.length);
    rows.forEach((row, n) => {
      const force = held.force.subarray(3 * row, 3 * row + 3);
      for (let k = 0; k < 3; k += 1) {
        points[6 * n + k] = held.center[3 * row + k] - travel[k];
        points[6 * n + 3 + k] = points[6 * n + k] + longest * force[k];
      }
      const shade = Math.min(254, Math.round((254 * Math.hypot(...force)) / (data.surfaces.greatest || 1)));
      colors.set(data.depths.slice(3 * shade, 3 * shade + 3), 3 * n);
    });
    this.scene.update(name, { points, colors, shaft_radius: 0.05 * size, head_radius: 0.12 * size, head_length: 0.3 * size });
  }
}

// Loose particles as points, cables as lines, cloths and soft bodies as surfaces.
class Particles {
  constructor(scene) {
    this.scene = scene;
    this.summed = new Set();
  }

  show(world, frame, look, travel) {
    const { held } = world;
    const { points: loose, diameter, thickness, triangles, lines } = this.scene.data.particles[world.template];
    const values = held.particle;
    const frames = world.particle_frames;
    const count = values.length / 3 / frames;
    if (!this.summed.has(held)) {
      for (let n = 1; n < values.length; n += 1) if (n % frames) values[n] += values[n - 1];
      this.summed.add(held);
    }
    const drawn = look.particles && !world.ended[frame];
    this.scene.visible("/particles/points", drawn && loose > 0);
    this.scene.visible("/particles/cables", drawn && lines.length > 0);
    this.scene.visible("/particles/surfaces", drawn && triangles.length > 0);
    if (!drawn) return {};
    const places = new Float32Array(3 * count);
    const at = frames > 1 ? frame : 0;
    for (let n = 0; n < places.length; n += 1) places[n] = values[n * frames + at] * world.contact_step - travel[n % 3];
    if (loose > 0) {
      const colors = Uint8Array.from({ length: 3 * loose }, (_, n) => this.scene.data.particle_colour[n % 3]);
      this.scene.update("/particles/points", { points: places.slice(0, 3 * loose), colors, point_size: diameter });
    }
    if (lines.length) {
      const points = new Float32Array(3 * lines.length);
      lines.forEach((end, n) => points.set(places.subarray(3 * (loose + end), 3 * (loose + end) + 3), 3 * n));
      this.scene.update("/particles/cables", { points, thickness });
    }
    if (triangles.length)
      this.scene.update("/particles/surfaces", {
        vertices: places.slice(3 * loose),
        faces: Uint32Array.from(triangles),
        opacity: Math.min(1, this.scene.data.sheet_opacity * look.opacity),
      });
    return {};
  }
}

// Contacts of cloths and soft bodies with themselves, as points.
class SelfContacts {
  constructor(scene) {
    this.scene = scene;
  }

  show(world, frame, look, travel) {
    const { held } = world;
    const { data } = this.scene;
    const [first, end] = [held.self_start[frame], held.self_start[frame + 1]];
    const rows = [];
    for (let n = first; n < end; n += 1)
      if (look.self_contacts && (!look.only || !look.pair || held.self_pair[n] === look.number)) rows.push(n);
    this.scene.visible("/contacts/self", rows.length > 0);
    if (rows.length) {
      const count = held.self_point.length / 3;
      const points = new Float32Array(3 * rows.length);
      rows.forEach((row, n) => {
        for (let k = 0; k < 3; k += 1) points[3 * n + k] = held.self_point[k * count + row] * world.contact_step - travel[k];
      });
      const colors = Uint8Array.from(points, (_, n) => data.self_contacts.colour[n % 3]);
      const size = data.unit * look.size * this.scene.distance;
      this.scene.update("/contacts/self", { points, colors, point_size: data.self_contacts.size * size });
    }
    return { selves: end - first };
  }
}
