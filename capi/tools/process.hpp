// SPDX-License-Identifier: Apache-2.0
// How a task's process begins: the program is found once, then started as leader of a process group of its own that does not
// outlive the launcher.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "capi/tools/fd.hpp"
#include "capi/tools/keeper.hpp"

namespace dist::launch {

// As shells have them.
inline constexpr int kCannotExecute = 126;
inline constexpr int kNotFound = 127;

struct Program {
  std::string path;
  std::vector<char*> arguments;        // with a NULL; of the command line
  std::vector<char*> shell_arguments;  // for a script that does not say what runs it
};

// As a shell finds `arguments[0]` in PATH. 0, or kNotFound or kCannotExecute with *why.
int find_program(char** arguments, Program* out, std::string* why);

// NAME=VALUE texts, and what execve() wants of them.
class Environment {
 public:
  // Of this process.
  Environment();
  void set(const std::string& name, const std::string& value);
  void unset(const std::string& name);
  char** data();

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

// What the launcher has changed for itself, and a program is to have as it was.
struct Inherited {
  sigset_t mask;
  struct sigaction pipe_action;
};

struct Started {
  pid_t pid = -1;           // none: `error` says why
  int error = 0;            // errno
  bool of_program = false;  // whether it is the program that could not be executed
  Fd out;                   // to read; none where the task has the launcher's own
  Fd err;
};

// Returns once the program is executed, or cannot be.
Started start_process(const Program& program, Environment& environment, const Inherited& inherited,
                      const Keeper& keeper, bool with_pipes);

}  // namespace dist::launch
