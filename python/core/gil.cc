// SPDX-License-Identifier: Apache-2.0
// Waits for the GIL, and keeps threads where they are when the interpreter ends. It ends a waiting thread by
// pthread_exit, which unwinds it with the unwinder of the C library. A module with another unwinder inside, such as the
// released wheels, crashes if that meets a function of its own that handles exceptions. So this file is compiled
// without exceptions: pthread_cleanup_push then uses setjmp, and its handler runs before any other function of the
// module is unwound.
#include "gil.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

#ifdef __EXCEPTIONS
#error "compile this file with -fno-exceptions"
#endif

// The first is of Python 3.13 and later, the second of earlier versions.
extern "C" {
__attribute__((weak)) int Py_IsFinalizing(void);
__attribute__((weak)) int _Py_IsFinalizing(void);
}

namespace weighbridge::python {
namespace {

std::atomic<std::thread::id> ending{};  // the thread that ends the interpreter, once it does

void stay(void*) {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

void note_ending() noexcept { ending = std::this_thread::get_id(); }

void stay_if_ending() noexcept {
  const auto asked = &Py_IsFinalizing != nullptr ? &Py_IsFinalizing : &_Py_IsFinalizing;
  if (asked == nullptr || asked() == 0 || ending.load() == std::this_thread::get_id()) return;
  stay(nullptr);
}

void take_gil(PyThreadState* state) noexcept {
  pthread_cleanup_push(stay, nullptr);
  PyEval_RestoreThread(state);
  pthread_cleanup_pop(0);
}

PyGILState_STATE take_gil() noexcept {
  PyGILState_STATE state = PyGILState_UNLOCKED;
  pthread_cleanup_push(stay, nullptr);
  state = PyGILState_Ensure();
  pthread_cleanup_pop(0);
  return state;
}

}  // namespace weighbridge::python
