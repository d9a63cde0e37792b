// SPDX-License-Identifier: Apache-2.0
// Keeps threads where they are when the interpreter ends. Before Python 3.14, it ends each thread that asks for the GIL
// by pthread_exit, which unwinds the thread's stack by force: in a call of the module, or in Python code that such a
// call runs. But functions of the module may not be left then: their destructors need the GIL, and a released wheel has
// another unwinder inside than the C library, which crashes on its frames. So such a thread stops at the first function
// of the module that has anything to do when it is unwound, and stays there, as threads do since Python 3.14.
#include "gil.h"

#include <unwind.h>

#include <atomic>
#include <chrono>
#include <thread>

// The first is of Python 3.13 and later, the second of earlier versions.
extern "C" {
__attribute__((weak)) int Py_IsFinalizing(void);
__attribute__((weak)) int _Py_IsFinalizing(void);
}

namespace weighbridge::python {
namespace {

std::atomic<std::thread::id> ending{};  // the thread that ends the interpreter, once it does

[[noreturn]] void stay() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

void note_ending() noexcept { ending = std::this_thread::get_id(); }

// Python cannot make a state for a thread of the library once the interpreter is taken down.
PyGILState_STATE take_gil() noexcept {
  const auto asked = &Py_IsFinalizing != nullptr ? &Py_IsFinalizing : &_Py_IsFinalizing;
  if (asked != nullptr && asked() != 0 && ending.load() != std::this_thread::get_id()) stay();
  return PyGILState_Ensure();
}

}  // namespace weighbridge::python

// The linker puts this in the place of the function that unwinds a frame of C++ (--wrap in CMakeLists.txt), for each
// frame of the module.
extern "C" {
_Unwind_Reason_Code __real___gxx_personality_v0(int, _Unwind_Action, _Unwind_Exception_Class, _Unwind_Exception*,
                                                _Unwind_Context*);
_Unwind_Reason_Code __wrap___gxx_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class kind,
                                                _Unwind_Exception* thrown, _Unwind_Context* frame) {
  if (actions & _UA_FORCE_UNWIND) weighbridge::python::stay();
  return __real___gxx_personality_v0(version, actions, kind, thrown, frame);
}
}
