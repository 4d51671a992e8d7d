//! Short-range forms of the Coulomb interaction.

mod debye_hueckel;
mod reaction_field;
mod yukawa;
