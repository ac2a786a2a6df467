// SPDX-License-Identifier: Apache-2.0
// Job: the tasks of this machine from start to end.
//
// Invariant: a single thread waits for signals, output and deadlines in one poll(), so no event is missed and
// no two handlers run at the same time.
//
//     kRunning ── with ps: the chief succeeds ──► kClosing    the others may end by themselves
//        │ ▲                                          │
//        │ └── all have ended ── kRestarting          │        all are being ended, then started again
//        │                                            ▼
//        └── a failure, a signal, no output ───────► kEnding  all are being ended
//
// Without ps, a job ends when all of its tasks have ended. Its workers finish together. Therefore no task is
// restarted after worker 0 has succeeded, because the task would find no other worker. Tasks that were
// restarted before get the grace period to end by themselves.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "capi/tools/fd.hpp"
#include "capi/tools/keeper.hpp"
#include "capi/tools/launch_options.hpp"
#include "capi/tools/launch_plan.hpp"
#include "capi/tools/line_prefixer.hpp"
#include "capi/tools/local_setup.hpp"
#include "capi/tools/process.hpp"
#include "capi/tools/sink.hpp"

struct pollfd;

namespace dist::launch {

// Exit status if dist-launch itself failed, except for an invalid command line.
inline constexpr int kLauncherFailed = 125;

// Does not change while the job lasts.
struct JobSetup {
  Options options;
  Program program;
  Inherited inherited;
  std::vector<PlannedTask> tasks;  // of all machines
  std::vector<HeldPort> ports;     // of the tasks, on one machine; held while the job lasts
  std::string secret;
  int signals = -1;  // a signalfd for the blocked signals
};

class Job {
 public:
  explicit Job(const JobSetup& setup);
  // Runs the job and returns the exit status.
  int run();

 private:
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  enum class Phase : uint8_t { kRunning, kRestarting, kClosing, kEnding };
  // The reaction to a failed task.
  enum class Answer : uint8_t { kEnd, kRestartTask, kRestartJob, kGoOn };

  struct Stream {
    Fd from;
    LinePrefixer prefixer;
    Sink* to;
  };
  struct Task {
    std::size_t place;  // index in the setup's tasks
    Stream out;
    Stream err;
    pid_t pid = -1;  // -1: not running
    bool has_succeeded = false;
    int32_t restarts = 0;
    int64_t start_at = kNever;
  };

  const PlannedTask& plan_of(const Task& task) const { return setup_.tasks[task.place]; }
  Task make_task(std::size_t place);
  Environment environment_of(const Task& task) const;
  void set_rendezvous(const Task& task, Environment& environment) const;

  void start_due();
  void start(Task& task);
  void wait();
  int timeout_ms() const;
  void read_from(Stream& stream);
  void drain(Stream& stream);
  void close_stream(Stream& stream);
  void write_to(Sink& sink);

  void take_signals();
  void told_to_end(int signal);
  void reap(Task& task);
  void judge(Task& task, const siginfo_t& end);
  Answer answer_to(const Task& failed) const;
  void failed(Task& task, const std::string& how, int status);
  void finish_as(const Task& task, const std::string& how, int status);
  void restart_task(Task& task, const std::string& how);
  void restart_job(const std::string& how);
  void go_on_without(const Task& task, const std::string& how);
  // Whether the workers' work is done, so that a task that fails now is neither restarted nor a failure of
  // the job.
  bool has_succeeded() const;
  void on_success();
  // Ends restarted tasks that have not ended by themselves.
  void end_stragglers();
  // Counts a restart and returns the delay before it.
  int64_t next_restart(std::string* which);
  void on_all_ended();
  void on_deadline();

  // The running tasks may end by themselves within the grace period.
  void begin_closing();
  // No further task starts; running ones get the signal and have the grace period to end.
  void end_all(int signal);
  void start_nobody();
  void finish_with(int status, std::string cause);
  void send_all(int signal) const;
  bool is_anyone_running() const;
  bool is_anyone_else_left(const Task& task) const;
  bool is_output_pending() const { return out_.is_pending() || own_err_.is_pending(); }
  void say(const std::string& text) { err_.append("dist-launch: " + text + "\n"); }

  const JobSetup& setup_;
  Keeper keeper_;
  Sink out_;
  Sink own_err_;
  Sink& err_;  // out_ if both are the same file, so that lines are not mixed
  std::vector<Task> tasks_;
  Phase phase_ = Phase::kRunning;
  int32_t num_restarts_ = 0;
  int32_t num_interrupts_ = 0;
  int told_by_ = 0;            // the signal that ends the job
  int64_t deadline_ = kNever;  // for tasks that must end
  int64_t restart_after_ = 0;  // in ns, for restarting the whole job
  int straggler_signal_ = SIGTERM;
  bool is_over_ = false;  // nothing runs or will be started
  int status_ = 0;
  std::string cause_;  // reason for status_; printed when all tasks have ended
};

}  // namespace dist::launch
