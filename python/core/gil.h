// SPDX-License-Identifier: Apache-2.0
// Giving up the GIL and taking it. A thread that asks for it while the interpreter ends is ended by it, in the middle
// of functions that may not be left: so it stays here instead, as threads do since Python 3.14.
#pragma once
#include <Python.h>

namespace weighbridge::python {

void note_ending() noexcept;  // this thread ends the interpreter, and goes on
void stay_if_ending() noexcept;
// PyEval_RestoreThread and PyGILState_Ensure, which do not return if the interpreter begins to end while they wait.
void take_gil(PyThreadState*) noexcept;
PyGILState_STATE take_gil() noexcept;

// Lets other threads of Python run.
class WithoutGil {
 public:
  WithoutGil() noexcept : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    stay_if_ending();
    take_gil(state_);
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};
// The GIL in any thread.
class WithGil {
 public:
  WithGil() noexcept {
    stay_if_ending();
    state_ = take_gil();
  }
  ~WithGil() {
    stay_if_ending();  // it was ended inside a call of Python
    PyGILState_Release(state_);
  }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace weighbridge::python
