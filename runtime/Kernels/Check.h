// The rules a library call must satisfy before a kernel may trust it. Every backend checks at load, so that kernels
// need no tests of their own and a damaged artifact cannot make one read or write outside its operands' views.
// README.md lists the rules by label.
#pragma once

#include "runtime/Core/Backend.h"

namespace plimsoll::runtime {

/// Checks one call against the rules of its operation. Fails with BadInput "<op> (rule <label>): found ..., expected
/// ...".
Status checkCall(const CallSpec &spec);

/// The operations that exist, in the order of README.md.
std::vector<std::string> libraryOperations();

} // namespace plimsoll::runtime
