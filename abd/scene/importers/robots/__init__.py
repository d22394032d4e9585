"""Importer of URDF and MJCF by means of MuJoCo's compiler.

    xml_tree    XML with limits of size       assets      meshes and packages
    urdf, mjcf  input for the compiler        compiled    compiled robot
    links       rigid bodies and shapes       chains      equivalent joints
    joints      joints with their settings    couplings   equalities and tendons
    drives      actuators                     contacts    materials and filters
    unsupported values without counterpart    scene       the complete scene

Bodies fixed to a link are merged with it, with their mass, inertia and shapes. Massless links between joints are merged with the
joints of the next link. Contacts, limits and equalities become barriers and constraints, to which MuJoCo's solver parameters
(solref, solimp) do not apply.
"""
