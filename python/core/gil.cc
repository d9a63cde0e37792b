// SPDX-License-Identifier: Apache-2.0
// Waits for the GIL. The interpreter ends a waiting thread by pthread_exit, which unwinds it with the unwinder of the C
// library. A module with another unwinder inside, such as the released wheels, crashes if that meets a function of its
// own that handles exceptions. So this file is compiled without exceptions: pthread_cleanup_push then uses setjmp, and
// its handler runs before any other function of the module is unwound.
#include "gil.h"

#include <pthread.h>

#ifdef __EXCEPTIONS
#error "compile this file with -fno-exceptions"
#endif

namespace weighbridge::python {
namespace {

void ended(void*) { stay(); }

}  // namespace

void take_gil(PyThreadState* state) noexcept {
  pthread_cleanup_push(ended, nullptr);
  PyEval_RestoreThread(state);
  pthread_cleanup_pop(0);
}

PyGILState_STATE take_gil() noexcept {
  PyGILState_STATE state = PyGILState_UNLOCKED;
  pthread_cleanup_push(ended, nullptr);
  state = PyGILState_Ensure();
  pthread_cleanup_pop(0);
  return state;
}

}  // namespace weighbridge::python
