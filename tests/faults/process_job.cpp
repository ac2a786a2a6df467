// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/process_job.hpp"

#include "tests/faults/process_worker.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <new>

extern char** environ;

namespace faults {
namespace {

constexpr int64_t kGuardNs = 50'000'000'000;  // a cell that takes longer counts as hanging
constexpr int64_t kLateNs = 1'000'000'000;

// Returns different loopback addresses for each job, so that none of its ports can have been given to a
// connection of another program, or of the previous job.
std::vector<std::string> own_addresses(int workers) {
  static int jobs = 0;
  const auto process = static_cast<unsigned>(getpid());
  const auto job = static_cast<unsigned>(++jobs);
  const std::string host = "127." + std::to_string(1 + process % 250) + "." +
                           std::to_string(job / 250 % 250) + "." + std::to_string(1 + job % 250) + ":";
  std::vector<std::string> addresses;
  for (int w = 0; w < workers; ++w)
    addresses.push_back(host + std::to_string(20000 + process / 250 % 400 * 8 + static_cast<unsigned>(w)));
  return addresses;
}

std::string tf_config(const std::vector<std::string>& addresses, int worker) {
  std::string text = "TF_CONFIG={\"cluster\": {\"worker\": [";
  for (std::size_t w = 0; w < addresses.size(); ++w) text += (w == 0 ? "\"" : ", \"") + addresses[w] + "\"";
  return text + "]}, \"task\": {\"type\": \"worker\", \"index\": " + std::to_string(worker) + "}}";
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// The shared page and the worker processes.
class ProcessJob {
 public:
  ProcessJob(const WorkerCell& cell, const ProcessSetup& setup) : cell_(cell), setup_(setup) {
    fd_ = memfd_create("cell", 0);
    if (fd_ < 0 || ftruncate(fd_, sizeof(ProcessPage)) != 0) std::abort();
    void* const at = mmap(nullptr, sizeof(ProcessPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (at == MAP_FAILED) std::abort();
    page_ = new (at) ProcessPage;
    page_->cell = cell;
    page_->timeout_ns = kLateNs;
    addresses_ = setup.addresses.empty() ? own_addresses(cell.workers) : setup.addresses;
  }
  ~ProcessJob() {
    for (Process& each : processes_) {
      if (each.pid <= 0 || each.ended) continue;
      kill(each.pid, SIGKILL);
      waitpid(each.pid, &each.status, 0);
    }
    for (const Process& each : processes_) {
      if (each.pidfd >= 0) close(each.pidfd);
    }
    munmap(page_, sizeof(ProcessPage));
    close(fd_);
  }
  ProcessJob(const ProcessJob&) = delete;
  ProcessJob& operator=(const ProcessJob&) = delete;

  std::string play() {
    for (int w = cell_.workers - 1; w >= 0; --w) {
      if (cell_.fault != WorkerFault::kNeverStarted || w != cell_.guilty) start(w);
    }
    const int64_t end = now_ns() + kGuardNs;
    bool over = true;
    if (cell_.fault == WorkerFault::kCutOff) {
      // If a worker ends early, no worker gets there. The await ends, and the checks below report it.
      if (page_->await([this] { return page_->inside.load() || any_ended(); }, kGuardNs)) {
        page_->cause();
        setup_.cut();
      }
    }
    if (cell_.fault == WorkerFault::kCutOff) {
      over = page_->await([this] { return page_->peers_runs_are_over() || any_ended(); }, end - now_ns());
    } else if (cell_.fault == WorkerFault::kStopped) {
      // By then each peer has declared it lost when its own lease expired. A peer that has only learned of
      // the loss from another one still listens to worker 0.
      over = page_->await([this] { return page_->peers_are_told() || any_ended(); }, end - now_ns());
      kill(processes_[cell_.guilty].pid, SIGCONT);
    }
    std::string trouble = over ? "" : "the peers' runs do not end";
    for (int w = 0; w < cell_.workers && trouble.empty(); ++w) trouble = await_end(w, end);
    if (setup_.mend && cell_.fault == WorkerFault::kCutOff) setup_.mend();
    for (int w = 0; w < cell_.workers && trouble.empty(); ++w) trouble = what_it_left(w);
    return trouble;
  }

  void tell(WorkerOutcome& out) const {
    for (int r = 0; r < cell_.members(); ++r) {
      const ProcessPage::Replica& from = page_->replicas[r];
      out.sides[r].phase.store(from.phase.load());
      out.sides[r].status = from.status;
      out.sides[r].returned_ns = from.returned_ns;
      out.sides[r].report = from.report.report();
    }
    for (int w = 0; w < cell_.workers; ++w) {
      const ProcessPage::Worker& from = page_->workers[w];
      out.runs[w] = {from.run, from.run_report.report(), from.returned_ns};
    }
    out.cause_ns.store(page_->cause_ns.load());
    if (cell_.fault != WorkerFault::kLate && cell_.fault != WorkerFault::kNeverStarted) return;
    // No member causes these faults by an action, so the cause is the deadline of the first member that
    // waits.
    int64_t first = 0;
    for (int r = 0; r < cell_.members(); ++r) {
      const int64_t coming = page_->replicas[r].coming_ns;
      if (!cell_.is_guilty(r) && coming != 0 && (first == 0 || coming < first)) first = coming;
    }
    out.cause_ns.store(first + kLateNs);
  }

 private:
  struct Process {
    pid_t pid = 0;
    int pidfd = -1;
    bool ended = false;
    int status = 0;
  };

  void start(int worker) {
    std::vector<std::string> environment;
    for (char** each = environ; *each != nullptr; ++each) {
      const std::string text = *each;
      if (text.rfind("TF_CONFIG=", 0) != 0 && text.rfind("DIST_", 0) != 0) environment.push_back(text);
    }
    environment.push_back(tf_config(addresses_, worker));
    environment.push_back("DIST_LEASE_SECONDS=" + std::to_string(kProcessLeaseNs / 1'000'000'000));
    if (setup_.environment) {
      for (const std::string& each : setup_.environment(worker)) environment.push_back(each);
    }
    std::vector<std::string> command = setup_.prefix ? setup_.prefix(worker) : std::vector<std::string>();
    command.insert(command.end(), {program(), "--worker", std::to_string(worker)});
    const std::vector<char*> words = pointers(command);
    const std::vector<char*> variables = pointers(environment);
    Process& process = processes_[worker];
    const pid_t parent = getpid();
    process.pid = fork();
    if (process.pid < 0) std::abort();
    if (process.pid == 0) {
      // The worker must not outlive this program, however that ends.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(127);
      if (fd_ == kPageFd ? fcntl(fd_, F_SETFD, 0) < 0 : dup2(fd_, kPageFd) < 0) _exit(127);
      execvpe(words[0], words.data(), variables.data());
      _exit(127);
    }
    process.pidfd = static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0));
    if (process.pidfd < 0) std::abort();
  }
  static std::string program() {
    char path[4096];
    const ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);
    if (bytes <= 0) std::abort();
    return std::string(path, static_cast<std::size_t>(bytes));
  }
  bool any_ended() const {
    for (const Process& each : processes_) {
      pollfd ready{each.pidfd, POLLIN, 0};
      if (each.pid > 0 && poll(&ready, 1, 0) == 1) return true;
    }
    return false;
  }
  std::string await_end(int worker, int64_t end) {
    Process& process = processes_[worker];
    if (process.pid <= 0) return "";
    pollfd ready{process.pidfd, POLLIN, 0};
    int found = 0;
    do {
      const int64_t left_ms = std::max<int64_t>(0, (end - now_ns()) / 1'000'000);
      found = poll(&ready, 1, static_cast<int>(left_ms));
    } while (found < 0 && errno == EINTR);
    const std::string who = "worker " + std::to_string(worker);
    if (found == 0) return who + " hangs";
    waitpid(process.pid, &process.status, 0);
    process.ended = true;
    const bool guilty = worker == cell_.guilty;
    const int status = process.status;
    if (guilty && cell_.fault == WorkerFault::kKilled && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
      return "";
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
    return who + (WIFSIGNALED(status) ? " was ended by signal " + std::to_string(WTERMSIG(status))
                                      : " ended with " + std::to_string(WEXITSTATUS(status)));
  }

  // For a worker that ended by itself: checks its other runs, its data and its resources.
  std::string what_it_left(int worker) const {
    const ProcessPage::Worker& from = page_->workers[worker];
    const std::string who = "worker " + std::to_string(worker) + ": ";
    if (from.before != DIST_OK) return who + "the run before: " + from.before_report.message;
    if (from.wrong_data.load() != 0) return who + "wrong sums";
    if (from.end != DIST_OK) return who + "the strategy does not end: " + from.end_report.message;
    const bool guilty = worker == cell_.guilty;
    if (guilty && (cell_.loses() || cell_.fault == WorkerFault::kNeverStarted)) return "";
    if (from.left_bytes != 0) return who + std::to_string(from.left_bytes) + " bytes are left behind";
    if (cell_.fault == WorkerFault::kNeverStarted) return "";
    const Report after = from.after_report.report();
    if (!cell_.loses()) return from.after == DIST_OK ? "" : who + "the next run: " + after.message;
    if (from.after == DIST_UNAVAILABLE && after.worker == cell_.guilty) return "";
    return who + "the next run: not lost, but " + dist_status_name(from.after) + " by worker " +
           std::to_string(after.worker) + ": " + after.message;
  }

  const WorkerCell cell_;
  const ProcessSetup& setup_;
  std::vector<std::string> addresses_;
  int fd_ = -1;
  ProcessPage* page_ = nullptr;
  Process processes_[kMostWorkers];
};

}  // namespace

std::string play_processes(const WorkerCell& cell, const ProcessSetup& setup, WorkerOutcome& out) {
  ProcessJob job(cell, setup);
  std::string trouble = job.play();
  job.tell(out);
  return trouble;
}

}  // namespace faults
