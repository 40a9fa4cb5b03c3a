// Triangles of the measured shapes, by template.
const inflated = async (triangles) => {
  const held = {};
  for (const [template, packed] of Object.entries(triangles)) held[template] = await inflate(packed);
  return held;
};

// A contact map: a mesh for each colour of the triangles of its shapes.
class ContactMap {
  constructor(scene, triangles) {
    this.scene = scene;
    this.triangles = triangles;
  }

  show(world, frame, look, travel) {
    const { levels, touching } = this.scene.data.map;
    const { corner, row, point } = this.triangles[world.template];
    const { map_level: level } = world.held;
    const frames = this.scene.data.frames.length;
    const drawn = look.map && !world.ended[frame];
    const counts = new Array(levels).fill(0);
    if (drawn) for (const at of point) counts[level[at * frames + frame]] += 1;
    const meshes = counts.map((count) => ({ vertices: new Float32Array(9 * count), used: 0 }));
    const poses = this.scene.poses(world, frame);
    for (let n = 0; drawn && n < point.length; n += 1) {
      const mesh = meshes[level[point[n] * frames + frame]];
      const pose = poses.subarray(7 * row[n], 7 * row[n] + 7);
      for (let at = 9 * n; at < 9 * n + 9; at += 3) {
        const place = turned(pose, corner[at], corner[at + 1], corner[at + 2]);
        for (let k = 0; k < 3; k += 1) mesh.vertices[mesh.used + k] = place[k] + pose[k] - travel[k];
        mesh.used += 3;
      }
    }
    meshes.forEach(({ vertices }, number) => {
      const name = `/map/${String(number).padStart(2, "0")}`;
      this.scene.visible(name, vertices.length > 0);
      if (vertices.length) this.scene.update(name, { vertices, faces: Uint32Array.from({ length: vertices.length / 3 }, (_, n) => n) });
    });
    let mapped = 0;
    for (let at = frame; at < level.length; at += frames) if (level[at] >= touching) mapped += 1;
    return { mapped };
  }
}

// A point rotated by the quaternion xyzw of a pose.
const turned = ([, , , x, y, z, w], a, b, c) => {
  const squared = x * x + y * y + z * z + w * w;
  const [p, q, r] = [2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)].map((value) => value / squared);
  return [a + w * p + y * r - z * q, b + w * q + z * p - x * r, c + w * r + x * q - y * p];
};
