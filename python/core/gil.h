// SPDX-License-Identifier: Apache-2.0
// Giving up the GIL and taking it, and threads that are in a function of the module when the interpreter ends.
#pragma once
#include <Python.h>

namespace weighbridge::python {

void note_ending() noexcept;  // this thread ends the interpreter, and goes on
// PyGILState_Ensure, which does not return if the interpreter ends.
PyGILState_STATE take_gil() noexcept;

// Lets other threads of Python run.
class WithoutGil {
 public:
  WithoutGil() noexcept : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};
// The GIL in any thread.
class WithGil {
 public:
  WithGil() noexcept : state_(take_gil()) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace weighbridge::python
