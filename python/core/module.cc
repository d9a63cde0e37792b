// SPDX-License-Identifier: Apache-2.0
// The extension module weighbridge._core.
#include "core.h"

NB_MODULE(_core, m) {
  using namespace weighbridge::python;
  // A model over a file object of Python that refers back to it is a cycle that no garbage collector sees, and threads
  // that are in a call when the interpreter ends keep what they use.
  nb::set_leak_warnings(false);
  m.attr("__version__") = text(weighbridge::version());
  define_arrow(m);
  define_errors(m);
  define_models(m);
  define_jobs(m);
  define_runtimes(m);
}
