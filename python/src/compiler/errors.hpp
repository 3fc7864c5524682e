// Errors of the compiler as Python exceptions.
#pragma once

#include "raise.hpp"

namespace cuvil::python {

// From here on Refused, InternalError, Cancelled and std::system_error arrive in Python as cuvil.Unsupported,
// cuvil.InternalError, KeyboardInterrupt and the OSError of their number.
void translate_exceptions();

} // namespace cuvil::python
