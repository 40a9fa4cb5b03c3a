# mujoco 4.0.0, cylinder and box: normal, wrong by 0.0808958 m.
# It needs NumPy and the engine alone: pip install mujoco==4.0.0
# Frame 38, world 0: /World/Objects/cylinder_39 and /World/Objects/crate_a.
def answer(distance, normal, point):
    normal, point = (" ".join(f"{value:.6f}" for value in each) for each in (normal, point))
    print(f"engine: distance {distance:.9f} m, normal {normal}, point {point}")

import mujoco

model = mujoco.MjModel.from_xml_string("""
<mujoco>
  <worldbody>
    <body name="shape0" mocap="true" pos="-0.5408530831336975 0.038186512887477875 0.2526467442512512" quat="0.5227530598640443 0.3658926210962797 0.705748025849361 0.3078498858856425">
      <geom name="shape0" type="cylinder" size="0.093567460009202 0.09591843748145518"/>
    </body>
    <body name="shape1" mocap="true" pos="-0.36267557740211487 -0.004177253693342209 0.4222052991390228" quat="0.9740371108055114 -0.1587057722278693 0.1593560287388804 0.025881281648724015">
      <geom name="shape1" type="box" size="0.10000000149011612 0.10000000149011612 0.10000000149011612"/>
    </body>
  </worldbody>
  <contact>
    <pair geom1="shape0" geom2="shape1" gap="0.009999999776482582"/>
  </contact>
</mujoco>
""")
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
for contact in data.contact:
    answer(contact.dist, contact.frame[:3] * (1 if contact.geom[0] < contact.geom[1] else -1), contact.pos)

print("exact:  distance -0.006448136 m, normal 0.313245 0.183912 0.931694, point -0.426011 0.059506 0.313309")
# Proof by support functions: both shapes are apart after a translation of 0.006448136 m along the exact normal, and of
# 0.087343903 m along the engine's.
