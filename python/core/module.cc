// SPDX-License-Identifier: Apache-2.0
// The extension module weighbridge._core.
#include "core.h"

NB_MODULE(_core, m) {
  using namespace weighbridge::python;
#ifdef NDEBUG
  // A model over a file object of Python that refers back to it is a cycle that no garbage collector sees.
  nb::set_leak_warnings(false);
#endif
  m.attr("__version__") = text(weighbridge::version());
  define_arrow(m);
  define_errors(m);
  define_models(m);
  define_jobs(m);
  define_runtimes(m);
}
