// SPDX-License-Identifier: Apache-2.0
// Starts the processes of tasks. The program is located once. Each process leads its own process group and
// dies with the launcher.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "capi/tools/fd.hpp"
#include "capi/tools/keeper.hpp"

namespace dist::launch {

// Exit statuses as used by shells.
inline constexpr int kCannotExecute = 126;
inline constexpr int kNotFound = 127;

struct Program {
  std::string path;
  std::vector<char*> arguments;        // from the command line, with a final NULL
  std::vector<char*> shell_arguments;  // for a script without an interpreter line
};

// Locates `arguments[0]` in PATH like a shell. Returns 0, or kNotFound or kCannotExecute and sets *why.
int find_program(char** arguments, Program* out, std::string* why);

// Environment variables as NAME=VALUE, and in the form that execve() needs.
class Environment {
 public:
  // Copies the environment of this process.
  Environment();
  void set(const std::string& name, const std::string& value);
  void unset(const std::string& name);
  char** data();

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

// Settings that the launcher has changed for itself, to be restored in the programs.
struct Inherited {
  sigset_t mask;
  struct sigaction pipe_action;
};

struct Started {
  pid_t pid = -1;           // -1: `error` has the reason
  int error = 0;            // an errno value
  bool of_program = false;  // the program itself could not be executed
  Fd out;                   // to read from; not open if the task has the launcher's own streams
  Fd err;
};

// Returns after the program was executed, or has failed to.
Started start_process(const Program& program, Environment& environment, const Inherited& inherited,
                      const Keeper& keeper, bool with_pipes);

}  // namespace dist::launch
