//! Short-range forms of the Coulomb interaction, and of the interaction of charged colloids.

mod debye_hueckel;
mod dlvo;
mod reaction_field;
mod yukawa;
