//! CUDA C++ of GALAMOST, handed out as text.
