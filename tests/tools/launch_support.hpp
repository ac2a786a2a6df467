// SPDX-License-Identifier: Apache-2.0
// Support for tests of dist-launch: a started launcher, with pipes to it and to its tasks.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

extern "C" {
#include <cmocka.h>

#include "tests/skip.h"
}

using Words = std::vector<std::string>;

// The arguments of the tests: dist-launch, launch_task, resolver_task.
inline std::string launcher_path, task_path, resolver_path;

inline void take_paths(int argc, char** argv) {
  // The parent of the tests may ignore some signals, like nohup.
  for (const int each : {SIGHUP, SIGINT, SIGQUIT, SIGTERM}) (void)signal(each, SIG_DFL);
  if (argc != 4) std::exit(2);
  launcher_path = argv[1];
  task_path = argv[2];
  resolver_path = argv[3];
}

inline Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// How a launcher is started, apart from its arguments.
struct Given {
  std::vector<std::pair<std::string, std::string>> environment = {};
  int input = -1;         // its standard input; -1 = that of the test
  int output = -1;        // its standard output; -1 = a pipe
  bool one_pipe = false;  // for both output and error
  int ignored = 0;        // a signal that is ignored
  rlim_t most_files = 0;  // limit for open files; 0 = that of the test
};

// Returns one line without its newline. At the end of the stream, returns the rest.
inline std::string line_of(int fd) {
  std::string line;
  for (char c = 0; read(fd, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

inline std::string rest_of(int fd) {
  std::string all;
  char bytes[4096];
  for (ssize_t n = 0; (n = read(fd, bytes, sizeof bytes)) > 0;)
    all.append(bytes, static_cast<std::size_t>(n));
  return all;
}

inline Words lines_of(const std::string& text) {
  Words lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

inline Words sorted(Words lines) {
  std::sort(lines.begin(), lines.end());
  return lines;
}

inline void assert_words(const std::string& text, const std::string& words) {
  if (text.find(words) == std::string::npos) fail_msg("no '%s' in '%s'", words.c_str(), text.c_str());
}

inline void assert_text(const std::string& text, const std::string& wanted) {
  assert_string_equal(text.c_str(), wanted.c_str());
}

inline void assert_lines(const Words& lines, const Words& wanted) {
  std::string a, b;
  for (const auto& line : lines) a += line + "\n";
  for (const auto& line : wanted) b += line + "\n";
  assert_text(a, b);
}

class Launch {
 public:
  explicit Launch(const Words& arguments, const Given& given = {}) {
    int out_pipe[2] = {}, err_pipe[2] = {}, tell_pipe[2] = {}, gate_pipe[2] = {};
    for (int* const ends : {out_pipe, err_pipe, tell_pipe, gate_pipe}) {
      if (pipe2(ends, O_CLOEXEC) != 0) fail_msg("pipe2: %d", errno);
    }
    Words words = Words{launcher_path} + arguments;
    std::vector<char*> pointers;
    for (auto& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    pid = fork();
    if (pid == 0) {
      // If a test fails, it does not end the launcher.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (given.input >= 0) dup2(given.input, 0);
      dup2(given.output >= 0 ? given.output : out_pipe[1], 1);
      dup2(given.one_pipe ? 1 : err_pipe[1], 2);
      fcntl(tell_pipe[1], F_SETFD, 0);
      fcntl(gate_pipe[0], F_SETFD, 0);
      for (const char* name : {"TF_CONFIG", "DIST_JOB_SECRET", "DIST_REPLICAS", "DIST_RESTART", "NO_COLOR"}) {
        unsetenv(name);
      }
      setenv("LAUNCH_TELL", std::to_string(tell_pipe[1]).c_str(), 1);
      setenv("LAUNCH_GATE", std::to_string(gate_pipe[0]).c_str(), 1);
      for (const auto& [name, value] : given.environment) setenv(name.c_str(), value.c_str(), 1);
      if (given.ignored != 0) signal(given.ignored, SIG_IGN);
      const rlimit files = {given.most_files, given.most_files};
      if (given.most_files != 0) setrlimit(RLIMIT_NOFILE, &files);
      execv(pointers[0], pointers.data());
      _exit(99);
    }
    assert_true(pid > 0);
    for (const int end : {out_pipe[1], err_pipe[1], tell_pipe[1], gate_pipe[0]}) close(end);
    out = out_pipe[0];
    err = err_pipe[0];
    told = tell_pipe[0];
    gate = gate_pipe[1];
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  ~Launch() {
    for (const int end : {out, err, told, gate}) close(end);
  }

  void send(int signal) const { assert_int_equal(kill(pid, signal), 0); }
  void open_gate(int times = 1) const {
    for (int i = 0; i < times; ++i) assert_int_equal(write(gate, "g", 1), 1);
  }
  void close_output() { close(std::exchange(out, -1)); }

  // Reads a line "worker 0 WORD PID" of a task. Returns the text before the PID, and the PID.
  std::pair<std::string, pid_t> hear_one() const {
    const std::string line = line_of(told);
    const std::size_t blank = line.rfind(' ');
    if (blank == std::string::npos) fail_msg("no task tells anything: '%s'", line.c_str());
    return {line.substr(0, blank), std::stoi(line.substr(blank))};
  }
  // Reads n such lines. Returns them sorted and without the PIDs; the first one's PID is stored in *first.
  Words hear(int n, pid_t* first = nullptr) const {
    Words heard;
    for (int i = 0; i < n; ++i) {
      const auto [words, its_pid] = hear_one();
      if (i == 0 && first != nullptr) *first = its_pid;
      heard.push_back(words);
    }
    return sorted(heard);
  }
  // Reads until all processes that have the pipe, including the launcher, have ended.
  std::string hear_rest() const { return rest_of(told); }

  // Returns its exit status, or -SIGNAL if it was killed.
  int end() const {
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  // Reads all of its output, and asserts its exit status.
  void ends(int status) {
    all_out = rest_of(out);
    all_err = rest_of(err);
    const int ended = end();
    if (ended != status) fail_msg("ended with %d and not %d: %s", ended, status, all_err.c_str());
  }

  pid_t pid = -1;
  int out = -1, err = -1, told = -1, gate = -1;
  std::string all_out, all_err;  // after ends()
};

// Returns the launcher's options followed by the command of a task with these actions.
inline Words task(const Words& options, const Words& actions) {
  return options + Words{"--", task_path} + actions;
}

// Waits until a process has been reaped.
inline void until_gone(pid_t pid) {
  while (kill(pid, 0) == 0) sched_yield();
}

inline std::string text_of_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  const std::string text = rest_of(fd);
  close(fd);
  return text;
}

// Waits until a process is in a state as in /proc: T is stopped, Z is ended and not reaped.
inline void until_state(pid_t pid, char state) {
  const std::string wanted = std::string(") ") + state + " ";
  while (text_of_file("/proc/" + std::to_string(pid) + "/stat").find(wanted) == std::string::npos)
    sched_yield();
}
