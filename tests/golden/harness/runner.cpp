// SPDX-License-Identifier: Apache-2.0
#include "runner.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <system_error>

namespace golden {
namespace {

void write_all(int to, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(to, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) _exit(1);
    if (n > 0) done += static_cast<std::size_t>(n);
  }
}

// A process that plays the cases and writes a line for each.
class Process {
 public:
  Process(ReplayFn replay, std::span<const Case* const> cases) {
    int ends[2];
    if (pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ == 0) {
      close(ends[0]);
      for (const Case* one : cases) write_all(ends[1], play(replay, *one) + "\n");
      _exit(0);
    }
    close(ends[1]);
    from_ = ends[0];
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    close(from_);
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);  // its remaining output is not needed
    end();
  }

  // Returns the next line, or what happened to the process if there is none.
  Answer next(std::chrono::seconds longest) {
    for (;;) {
      if (const std::size_t end = buffer_.find('\n'); end != buffer_.npos) {
        Answer answer{Answer::How::kPlayed, buffer_.substr(0, end)};
        buffer_.erase(0, end + 1);
        return answer;
      }
      pollfd one{from_, POLLIN, 0};
      const int ready = poll(&one, 1, static_cast<int>(std::chrono::milliseconds(longest).count()));
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) {
        kill(pid_, SIGKILL);
        end();
        return {Answer::How::kHung, "no answer for " + std::to_string(longest.count()) + " s"};
      }
      char bytes[65536];
      const ssize_t n = read(from_, bytes, sizeof bytes);
      if (n > 0) buffer_.append(bytes, static_cast<std::size_t>(n));
      if (n == 0) return {Answer::How::kDied, end()};
    }
  }

 private:
  std::string end() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    if (WIFSIGNALED(status)) return std::string("died: ") + strsignal(WTERMSIG(status));
    return "ended with " + std::to_string(WEXITSTATUS(status));
  }

  pid_t pid_ = -1;
  int from_ = -1;
  std::string buffer_;
};

// Returns how many cases, beginning with `first`, one process may play.
std::size_t together(const Replayed& area, std::span<const Case* const> cases, std::size_t first) {
  std::size_t end = first;
  while (end < cases.size() && !area.is_by_grpc(cases[end]->id)) ++end;
  return end - first;
}

}  // namespace

void run_cases(const Replayed& area, std::span<const Case* const> cases, std::chrono::seconds longest,
               const std::function<void(std::size_t index, const Answer& answer)>& answered) {
  std::optional<Process> process;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const bool alone = area.is_by_grpc(cases[i]->id);
    if (alone) process.reset();
    if (!process) process.emplace(area.replay, cases.subspan(i, alone ? 1 : together(area, cases, i)));
    const Answer answer = process->next(longest);
    if (alone || answer.how != Answer::How::kPlayed) process.reset();
    answered(i, answer);
  }
}

}  // namespace golden
