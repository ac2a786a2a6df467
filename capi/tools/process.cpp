// SPDX-License-Identifier: Apache-2.0
#include "capi/tools/process.hpp"

#include <fcntl.h>
#include <paths.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace dist::launch {
namespace {

// Returns 0 if the file looks executable, otherwise an errno value.
int executable_error(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

int refuse(int error, const std::string& name, std::string* why) {
  const bool is_missing = error == ENOENT || error == ENOTDIR;
  *why = name + (is_missing ? ": not found" : std::string(": cannot be executed: ") + std::strerror(error));
  return is_missing ? kNotFound : kCannotExecute;
}

// Sent by the new process to the launcher if it cannot execute the program.
struct Report {
  int error;
  bool of_program;
};

// The work of the new process before it executes the program. Only async-signal-safe calls are allowed after
// fork().
struct Beginning {
  const Program& program;
  char** environment;
  const Inherited& inherited;
  const Keeper& keeper;
  pid_t launcher;
  int out;  // -1: the launcher's
  int err;
  int report;

  [[noreturn]] void fail(bool of_program = false) const noexcept {
    const Report failure = {errno, of_program};
    while (write(report, &failure, sizeof failure) < 0 && errno == EINTR) continue;
    _exit(kNotFound);
  }

  [[noreturn]] void run() const noexcept {
    if (setpgid(0, 0) != 0) fail();
    keeper.add(getpid());
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail();
    // The launcher may have died before the prctl() call, and then no signal comes.
    if (getppid() != launcher) _exit(kNotFound);
    const int input = open(_PATH_DEVNULL, O_RDONLY | O_CLOEXEC);
    if (input < 0 || dup2(input, STDIN_FILENO) < 0) fail();
    if (out >= 0 && (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)) fail();
    if (sigaction(SIGPIPE, &inherited.pipe_action, nullptr) != 0) fail();
    if (sigprocmask(SIG_SETMASK, &inherited.mask, nullptr) != 0) fail();
    execve(program.path.c_str(), program.arguments.data(), environment);
    if (errno == ENOEXEC) execve(_PATH_BSHELL, program.shell_arguments.data(), environment);
    fail(true);
  }
};

Started failure() {
  Started failed;
  failed.error = errno;
  return failed;
}

}  // namespace

int find_program(char** arguments, Program* out, std::string* why) {
  const std::string name = arguments[0];
  for (char** one = arguments;; ++one) {
    out->arguments.push_back(*one);
    if (*one == nullptr) break;
  }
  int error = ENOENT;
  if (name.find('/') != std::string::npos) {
    out->path = name;
    error = executable_error(name);
  } else if (!name.empty()) {
    const char* const listed = getenv("PATH");
    const std::string_view path = listed != nullptr ? listed : "/usr/local/bin:/usr/bin:/bin";
    for (std::size_t begin = 0; begin <= path.size() && error != 0;) {
      const std::size_t end = std::min(path.find(':', begin), path.size());
      // An empty entry means the current folder.
      out->path = begin == end ? "./" + name : std::string(path.substr(begin, end - begin)) + "/" + name;
      const int of_this = executable_error(out->path);
      // Prefer reporting a file that cannot be executed over not finding one later in the PATH.
      if (of_this == 0 || (of_this != ENOENT && of_this != ENOTDIR)) error = of_this;
      begin = end + 1;
    }
  }
  if (error != 0) return refuse(error, name.empty() ? "\"\"" : name, why);
  out->shell_arguments = {const_cast<char*>(_PATH_BSHELL), out->path.data()};
  out->shell_arguments.insert(out->shell_arguments.end(), out->arguments.begin() + 1, out->arguments.end());
  return 0;
}

Environment::Environment() {
  for (char** one = environ; *one != nullptr; ++one) texts_.emplace_back(*one);
}

void Environment::set(const std::string& name, const std::string& value) {
  unset(name);
  texts_.push_back(name + "=" + value);
}

void Environment::unset(const std::string& name) {
  std::erase_if(texts_, [&](const std::string& text) { return text.starts_with(name + "="); });
}

char** Environment::data() {
  pointers_.clear();
  for (std::string& text : texts_) pointers_.push_back(text.data());
  pointers_.push_back(nullptr);
  return pointers_.data();
}

Started start_process(const Program& program, Environment& environment, const Inherited& inherited,
                      const Keeper& keeper, bool with_pipes) {
  Started started;
  Fd out;
  Fd err;
  Fd reported;
  Fd report;
  if (!make_pipe(&reported, &report)) return failure();
  if (with_pipes) {
    if (!make_pipe(&started.out, &out) || !make_pipe(&started.err, &err)) return failure();
    for (const Fd* end : {&started.out, &started.err}) {
      if (fcntl(end->get(), F_SETFL, O_NONBLOCK) != 0) return failure();
    }
  }
  const Beginning beginning = {program,  environment.data(), inherited, keeper,
                               getpid(), out.get(),          err.get(), report.get()};
  started.pid = fork();
  if (started.pid < 0) return failure();
  if (started.pid == 0) beginning.run();
  report.reset();
  Report failed = {};
  ssize_t n = 0;
  while ((n = read(reported.get(), &failed, sizeof failed)) < 0 && errno == EINTR) continue;
  if (n <= 0) return started;  // the pipe was closed when the program was executed
  keeper.remove(started.pid);
  waitpid(started.pid, nullptr, 0);
  started.pid = -1;
  started.error = failed.error;
  started.of_program = failed.of_program;
  return started;
}

}  // namespace dist::launch
