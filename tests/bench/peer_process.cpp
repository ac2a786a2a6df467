// SPDX-License-Identifier: Apache-2.0
// Uses two pipes, a file for the process's error output, and /proc to find its children.
#include "tests/bench/peer_process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tests/bench/harness.hpp"

namespace bench {
namespace {

constexpr double kStartUs = 120e6;   // Python with its packages from a cold disk
constexpr double kAnswerUs = 120e6;  // JAX itself gives up after 60 s
constexpr double kStopUs = 3e6;
constexpr double kPutDownUs = 1e6;

// Fields of /proc/PID/stat after the name: 4 is the parent, 14 and 15 are the CPU time, 22 is the start time.
struct Stat {
  pid_t parent = 0;
  unsigned long long user_ticks = 0, system_ticks = 0, start_ticks = 0;
};
Stat stat_of(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/stat";
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "r"), std::fclose);
  char line[1024];
  Stat stat;
  if (!file || std::fgets(line, sizeof line, file.get()) == nullptr) return stat;
  const char* const after_name = std::strrchr(line, ')');
  if (after_name == nullptr ||
      std::sscanf(after_name,
                  ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %llu",
                  &stat.parent, &stat.user_ticks, &stat.system_ticks, &stat.start_ticks) != 4) {
    return {};
  }
  return stat;
}

}  // namespace

std::vector<pid_t> with_descendants(pid_t process) {
  std::vector<std::pair<pid_t, pid_t>> all;  // child, parent
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
    const pid_t id = std::atoi(entry->d_name);
    if (id > 0) all.emplace_back(id, stat_of(id).parent);
  }
  std::vector<pid_t> found{process};
  for (size_t i = 0; i < found.size(); ++i) {
    for (const auto& [child, parent] : all) {
      if (parent == found[i]) found.push_back(child);
    }
  }
  return found;
}

namespace {

// Runs in the child. It has its own process group, so that Ctrl-C reaches only dist_bench, which then ends
// it.
[[noreturn]] void become(const peers::Words& command, int in, int out, int errors) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  setpgid(0, 0);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  std::fprintf(stderr, "%s: %s\n", words[0], std::strerror(errno));
  std::_Exit(127);
}

bool ended(pid_t process, double limit_us) {
  for (const double begin = now_us(); now_us() - begin < limit_us; sleep_us(2e3)) {
    if (waitpid(process, nullptr, WNOHANG) != 0) return true;
  }
  return false;
}

}  // namespace

PeerProcess::PeerProcess(const peers::Words& command) {
  try {
    start(command);
    peers::Words ready;
    if (!read_answer(ready, kStartUs) || ready.size() < 3 || ready[0] != "@ready") lose("did not start");
    name_ = ready[1];
    forms_.assign(ready.begin() + 2, ready.end());
    processes_ = with_descendants(process_);
  } catch (...) {
    stop();
    throw;
  }
}

PeerProcess::~PeerProcess() { stop(); }

void PeerProcess::start(const peers::Words& command) {
  signal(SIGPIPE, SIG_IGN);  // writing to a peer that has died then fails instead
  errors_.reset(std::tmpfile());
  int in[2], out[2];
  if (!errors_ || pipe2(in, O_CLOEXEC) != 0) throw PeerLost("no file descriptor left");
  if (pipe2(out, O_CLOEXEC) != 0) {
    close(in[0]);
    close(in[1]);
    throw PeerLost("no file descriptor left");
  }
  process_ = fork();
  if (process_ == 0) become(command, in[0], out[1], fileno(errors_.get()));
  close(in[0]);
  close(out[1]);
  to_ = in[1];
  from_ = out[0];
  if (process_ < 0) throw PeerLost("no process left");
}

void PeerProcess::close_pipes() {
  if (to_ >= 0) close(to_);
  if (from_ >= 0) close(from_);
  to_ = from_ = -1;
}

void PeerProcess::stop() {
  if (to_ >= 0) {
    [[maybe_unused]] const ssize_t sent = write(to_, "quit\n", 5);
  }
  close_pipes();
  if (process_ <= 0) return;
  if (!ended(process_, kStopUs)) {
    for (const pid_t process : with_descendants(process_)) kill(process, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  process_ = -1;
}

// A launcher that is asked to end also ends its ranks and removes its files. Ranks that it leaves behind are
// no longer its children, so they are listed before.
void PeerProcess::put_down() {
  close_pipes();
  if (process_ <= 0) return;
  std::vector<std::pair<pid_t, Stat>> all;
  for (const pid_t process : with_descendants(process_)) all.emplace_back(process, stat_of(process));
  kill(process_, SIGTERM);
  const bool went = ended(process_, kPutDownUs);
  for (const auto& [process, stat] : all) {
    if (stat_of(process).start_ticks == stat.start_ticks) kill(process, SIGKILL);
  }
  if (!went) waitpid(process_, nullptr, 0);
  process_ = -1;
}

double PeerProcess::cpu_us() const {
  unsigned long long ticks = 0;
  for (const pid_t process : processes_) {
    const Stat stat = stat_of(process);
    ticks += stat.user_ticks + stat.system_ticks;
  }
  return static_cast<double>(ticks) * 1e6 / static_cast<double>(sysconf(_SC_CLK_TCK));
}

peers::Words PeerProcess::ask(const std::string& command) {
  const std::string line = command + "\n";
  peers::Words answer;
  if (write(to_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) lose("has gone");
  if (!read_answer(answer, kAnswerUs)) lose("did not answer to: " + command);
  return answer;
}

bool PeerProcess::read_answer(peers::Words& answer, double limit_us) {
  const double begin = now_us();
  for (;;) {
    for (size_t end; (end = unread_.find('\n')) != std::string::npos;) {
      const std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      if (line.starts_with("@")) {
        answer = peers::split(line);
        return true;
      }
    }
    const double left_us = limit_us - (now_us() - begin);
    pollfd readable{from_, POLLIN, 0};
    if (left_us <= 0 || poll(&readable, 1, static_cast<int>(left_us / 1e3) + 1) < 0) return false;
    char bytes[4096];
    const ssize_t count = readable.revents != 0 ? read(from_, bytes, sizeof bytes) : 0;
    if (readable.revents != 0 && count <= 0) return false;
    unread_.append(bytes, static_cast<size_t>(count));
  }
}

void PeerProcess::lose(const std::string& what) {
  const std::string words = last_words();
  lost_ = name_ + " " + what + (words.empty() ? "" : " (" + words + ")");
  throw PeerLost(lost_);
}

// Returns the last line of its stderr that contains letters and is not part of a stack trace.
std::string PeerProcess::last_words() {
  std::rewind(errors_.get());
  char line[512];
  std::string last;
  while (std::fgets(line, sizeof line, errors_.get()) != nullptr) {
    line[std::strcspn(line, "\n")] = '\0';
    const char first = line[std::strspn(line, " ")];
    const bool frame = first == '@' || first == '*';
    if (!frame &&
        std::any_of(line, line + std::strlen(line), [](unsigned char c) { return std::isalpha(c) != 0; })) {
      last = line;
    }
  }
  return last.substr(0, 160);
}

}  // namespace bench
