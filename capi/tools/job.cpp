// SPDX-License-Identifier: Apache-2.0
#include "capi/tools/job.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace dist::launch {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kFirstDelay = kSecond / 10;
constexpr int64_t kLongestDelay = 5 * kSecond;

int64_t now() noexcept {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * kSecond + time.tv_nsec;
}

// The delay before a restart; the first one has number 1.
int64_t delay_of(int32_t restart) noexcept {
  return restart > 6 ? kLongestDelay : std::min(kLongestDelay, kFirstDelay << (restart - 1));
}

std::string seconds(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", static_cast<double>(ns) / kSecond);
  return text;
}

std::string signal_name(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

std::string prefix_of(const std::string& name, std::size_t place, bool is_coloured) {
  // Red is reserved for errors.
  static constexpr const char* kColours[] = {"36", "32", "33", "35", "34", "96"};
  const std::string plain = "[" + name + "]";
  if (!is_coloured) return plain + " ";
  return std::string("\033[") + kColours[place % std::size(kColours)] + "m" + plain + "\033[0m ";
}

}  // namespace

Job::Job(const JobSetup& setup)
    : setup_(setup),
      out_(STDOUT_FILENO),
      own_err_(STDERR_FILENO),
      err_(is_same_file(STDOUT_FILENO, STDERR_FILENO) ? out_ : own_err_) {
  for (std::size_t place = 0; place < setup.tasks.size(); ++place) {
    if (setup.tasks[place].is_local) tasks_.push_back(make_task(place));
  }
}

Job::Task Job::make_task(std::size_t place) {
  const std::string name = setup_.tasks[place].name();
  return {place,
          {Fd(), LinePrefixer(prefix_of(name, place, out_.is_coloured())), &out_},
          {Fd(), LinePrefixer(prefix_of(name, place, err_.is_coloured())), &err_}};
}

int Job::run() {
  if (!keeper_.start()) {
    say(std::string("cannot start a process: ") + std::strerror(errno));
    err_.flush();
    return kLauncherFailed;
  }
  for (Task& task : tasks_) task.start_at = 0;
  for (;;) {
    start_due();
    if (!is_over_ && !is_anyone_running()) on_all_ended();
    if (is_over_ && !is_output_pending()) return status_;
    wait();
  }
}

// ---- Starting ---------------------------------------------------------------------------------------

Environment Job::environment_of(const Task& task) const {
  Environment environment;
  environment.set("TF_CONFIG", tf_config(setup_.tasks, task.place));
  environment.set("DIST_JOB_SECRET", setup_.secret);
  set_rendezvous(task, environment);
  if (setup_.options.replicas > 0) environment.set("DIST_REPLICAS", std::to_string(setup_.options.replicas));
  environment.unset("DIST_RESTART");
  if (task.restarts > 0) environment.set("DIST_RESTART", std::to_string(task.restarts));
  return environment;
}

// The same place for programs that create a resolver for a rendezvous. The workers that read TF_CONFIG use
// the address of the first task as well, but a program does only one of the two.
void Job::set_rendezvous(const Task& task, Environment& environment) const {
  for (const char* const each : {"DIST_RENDEZVOUS", "DIST_RANK", "DIST_SIZE"}) environment.unset(each);
  if (setup_.options.ps > 0) return;  // not all tasks are workers
  environment.set("DIST_RENDEZVOUS", setup_.tasks.front().address);
  environment.set("DIST_RANK", std::to_string(task.place));
  environment.set("DIST_SIZE", std::to_string(setup_.tasks.size()));
}

void Job::start_due() {
  const int64_t time = now();
  for (Task& task : tasks_) {
    if (task.start_at <= time) start(task);
  }
}

void Job::start(Task& task) {
  task.start_at = kNever;
  Environment environment = environment_of(task);
  Started started =
      start_process(setup_.program, environment, setup_.inherited, keeper_, setup_.options.prefix);
  if (started.pid < 0) {
    const bool is_missing = started.error == ENOENT || started.error == ENOTDIR;
    const int status = !started.of_program ? kLauncherFailed : is_missing ? kNotFound : kCannotExecute;
    const std::string what = started.of_program ? setup_.program.path + ": cannot be executed: "
                                                : plan_of(task).name() + " could not be started: ";
    return finish_as(task, what + std::strerror(started.error), status);
  }
  task.pid = started.pid;
  task.out.from = std::move(started.out);
  task.err.from = std::move(started.err);
}

// ---- Waiting and output -----------------------------------------------------------------------------

int Job::timeout_ms() const {
  int64_t next = deadline_;
  for (const Task& task : tasks_) next = std::min(next, task.start_at);
  if (next == kNever) return -1;
  constexpr int64_t kMillisecond = 1'000'000;
  const int64_t rest = std::max<int64_t>(next - now(), 0);
  return static_cast<int>((rest + kMillisecond - 1) / kMillisecond);
}

void Job::wait() {
  std::vector<pollfd> polled = {{setup_.signals, POLLIN, 0}};
  std::vector<Stream*> streams;
  std::vector<Sink*> sinks;
  for (Task& task : tasks_) {
    for (Stream* const stream : {&task.out, &task.err}) {
      if (!stream->from.is_open() || !stream->to->has_room()) continue;
      polled.push_back({stream->from.get(), POLLIN, 0});
      streams.push_back(stream);
    }
  }
  for (Sink* const sink : {&out_, &own_err_}) {
    if (!sink->is_pending()) continue;
    polled.push_back({sink->fd(), POLLOUT, 0});
    sinks.push_back(sink);
  }
  if (poll(polled.data(), polled.size(), timeout_ms()) < 0) return;  // EINTR: after a stop
  const pollfd* ready = polled.data() + 1;
  for (Stream* const stream : streams) {
    if ((ready++)->revents != 0) read_from(*stream);
  }
  for (Sink* const sink : sinks) {
    if ((ready++)->revents != 0) write_to(*sink);
  }
  if (polled.front().revents != 0) take_signals();
  if (deadline_ <= now()) on_deadline();
}

void Job::read_from(Stream& stream) {
  char bytes[65536];
  const ssize_t n = read(stream.from.get(), bytes, sizeof bytes);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return close_stream(stream);
  stream.prefixer.feed({bytes, static_cast<std::size_t>(n)}, stream.to->queue());
}

// Reads what is available when the task has ended. It does not wait for the end of the stream, because a
// process that has left the task's group may hold it open.
void Job::drain(Stream& stream) {
  if (!stream.from.is_open()) return;
  int left = 0;
  if (ioctl(stream.from.get(), FIONREAD, &left) != 0) left = 0;
  char bytes[4096];
  while (left > 0) {
    const ssize_t n = read(stream.from.get(), bytes, std::min(sizeof bytes, static_cast<std::size_t>(left)));
    if (n <= 0) break;
    stream.prefixer.feed({bytes, static_cast<std::size_t>(n)}, stream.to->queue());
    left -= static_cast<int>(n);
  }
  close_stream(stream);
}

void Job::close_stream(Stream& stream) {
  stream.prefixer.finish(stream.to->queue());
  stream.from.reset();
}

void Job::write_to(Sink& sink) {
  const bool was_well = sink.error() == 0;
  sink.write_some();
  if (sink.error() == 0 || !was_well) return;
  const std::string which = &sink == &out_ ? "standard output" : "standard error";
  const std::string why = "cannot write to " + which + ": " + std::strerror(sink.error());
  if (is_over_) {
    say(why);
    if (status_ == 0) status_ = kLauncherFailed;
  } else if (phase_ != Phase::kEnding || status_ == 0) {
    finish_with(kLauncherFailed, why + "; the job was ended");
    end_all(SIGTERM);
  }
}

// ---- Signals and ends of tasks ----------------------------------------------------------------------

void Job::take_signals() {
  signalfd_siginfo told;
  bool has_ended = false;
  while (read(setup_.signals, &told, sizeof told) == sizeof told) {
    const auto signal = static_cast<int>(told.ssi_signo);
    switch (signal) {
      case SIGCHLD:
        // If several tasks have ended, judge the one that was reported first, because it may have caused the
        // others.
        for (Task& task : tasks_) {
          if (task.pid > 0 && task.pid == static_cast<pid_t>(told.ssi_pid)) reap(task);
        }
        has_ended = true;
        break;
      case SIGTSTP:
        send_all(SIGTSTP);
        kill(getpid(), SIGSTOP);
        send_all(SIGCONT);
        break;
      case SIGCONT:
      case SIGUSR1:
      case SIGUSR2: send_all(signal); break;
      default: told_to_end(signal); break;
    }
  }
  if (!has_ended) return;
  for (Task& task : tasks_) reap(task);
}

void Job::told_to_end(int signal) {
  if (is_over_) {  // the reader of the remaining output does not respond
    out_.drop();
    own_err_.drop();
    if (status_ == 0) status_ = 128 + signal;
    return;
  }
  if (signal == SIGINT && ++num_interrupts_ > 1) {
    say("second SIGINT: killing all tasks");
    return send_all(SIGKILL);
  }
  if (phase_ == Phase::kEnding) return send_all(signal);
  told_by_ = signal;
  // After the chief has ended, the job keeps the chief's status.
  finish_with(phase_ == Phase::kClosing ? status_ : 128 + signal, "");
  say(signal_name(signal) + " was forwarded to all tasks" +
      (signal == SIGINT ? "; a second SIGINT kills them" : ""));
  end_all(signal);
}

void Job::reap(Task& task) {
  siginfo_t end = {};
  if (task.pid < 0 || waitid(P_PID, static_cast<id_t>(task.pid), &end, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      end.si_pid == 0) {
    return;
  }
  // Until the leader is reaped, the number of its group cannot be reused.
  kill(-task.pid, SIGKILL);
  keeper_.remove(task.pid);
  waitpid(task.pid, nullptr, 0);
  task.pid = -1;
  drain(task.out);
  drain(task.err);
  judge(task, end);
}

void Job::judge(Task& task, const siginfo_t& end) {
  if (phase_ != Phase::kRunning) return;
  const std::string name = plan_of(task).name();
  if (end.si_code != CLD_EXITED) {
    return failed(task, name + " was killed by " + signal_name(end.si_status), 128 + end.si_status);
  }
  if (end.si_status != 0) {
    return failed(task, name + " exited with status " + std::to_string(end.si_status), end.si_status);
  }
  task.has_succeeded = true;
  if (setup_.options.ps > 0) {
    if (plan_of(task).is_chief()) begin_closing();
  } else if (has_succeeded()) {
    on_success();
  }
}

// Worker 0 may be on another machine. Then this one only knows that a task is the last one of this machine.
bool Job::has_succeeded() const {
  const Options& options = setup_.options;
  if (options.ps > 0 || options.restarts == 0 || options.restart == RestartWhat::kJob) return false;
  const auto succeeded = [](const Task& task) { return task.has_succeeded; };
  if (tasks_.front().place == 0) return succeeded(tasks_.front());
  return std::count_if(tasks_.begin(), tasks_.end(), succeeded) + 1 >=
             static_cast<std::ptrdiff_t>(tasks_.size()) &&
         tasks_.size() > 1;
}

void Job::on_success() {
  start_nobody();
  const bool is_any_restarted = std::any_of(
      tasks_.begin(), tasks_.end(), [](const Task& task) { return task.pid > 0 && task.restarts > 0; });
  if (is_any_restarted && deadline_ == kNever) deadline_ = now() + setup_.options.grace_ns;
}

void Job::end_stragglers() {
  const std::string grace = seconds(setup_.options.grace_ns);
  for (const Task& task : tasks_) {
    if (task.pid <= 0 || task.restarts == 0) continue;
    say(plan_of(task).name() + " was restarted and did not end within " + grace + " after the others: sent " +
        signal_name(straggler_signal_));
    kill(-task.pid, straggler_signal_);
    kill(-task.pid, SIGCONT);
    deadline_ = now() + setup_.options.grace_ns;
  }
  straggler_signal_ = SIGKILL;
}

// Only a worker can be restarted on its own. The variables of a ps, and the chief's knowledge of the work,
// are lost with them. The chief learns of a lost ps from its own calls.
Job::Answer Job::answer_to(const Task& failed) const {
  const Options& options = setup_.options;
  const bool is_restart_left = num_restarts_ < options.restarts;
  const bool is_led = options.ps > 0;
  const bool is_chief = plan_of(failed).is_chief();
  if (!is_restart_left) return is_led && !is_chief ? Answer::kGoOn : Answer::kEnd;
  if (options.restart == RestartWhat::kJob) return Answer::kRestartJob;
  if (!is_led || plan_of(failed).is_worker()) return Answer::kRestartTask;
  return is_chief ? Answer::kRestartJob : Answer::kGoOn;
}

void Job::failed(Task& task, const std::string& how, int status) {
  if (has_succeeded()) return say(how + " after the job had ended: not restarting it");
  switch (answer_to(task)) {
    case Answer::kEnd: return finish_as(task, how, status);
    case Answer::kRestartTask: return restart_task(task, how);
    case Answer::kRestartJob: return restart_job(how);
    case Answer::kGoOn: return go_on_without(task, how);
  }
}

void Job::finish_as(const Task& task, const std::string& how, int status) {
  if (phase_ != Phase::kRunning) return;
  finish_with(status, how + (is_anyone_else_left(task) ? "; the others were ended" : ""));
  end_all(SIGTERM);
}

int64_t Job::next_restart(std::string* which) {
  ++num_restarts_;
  *which =
      " (restart " + std::to_string(num_restarts_) + " of " + std::to_string(setup_.options.restarts) + ")";
  return delay_of(num_restarts_);
}

void Job::restart_task(Task& task, const std::string& how) {
  std::string which;
  const int64_t delay = next_restart(&which);
  say(how + "; restarting it in " + seconds(delay) + which);
  ++task.restarts;
  task.start_at = now() + delay;
}

void Job::restart_job(const std::string& how) {
  std::string which;
  restart_after_ = next_restart(&which);
  say(how + "; ending all tasks, and restarting them " + seconds(restart_after_) + " later" + which);
  phase_ = Phase::kRestarting;
  end_all(SIGTERM);
}

void Job::go_on_without(const Task& task, const std::string& how) {
  if (!plan_of(task).is_worker())
    return say(how + "; its variables are lost: the chief decides how the job ends");
  const bool is_any_left = std::any_of(tasks_.begin(), tasks_.end(), [&](const Task& one) {
    return plan_of(one).is_worker() && (one.pid > 0 || one.start_at != kNever);
  });
  say(how + "; no restart is left: the job continues without " + (is_any_left ? "it" : "any worker"));
}

// No task is running, but some may be about to start.
void Job::on_all_ended() {
  if (phase_ == Phase::kRestarting) {
    phase_ = Phase::kRunning;
    deadline_ = kNever;
    for (Task& task : tasks_) {
      ++task.restarts;
      task.has_succeeded = false;
      task.start_at = now() + restart_after_;
    }
  }
  const bool is_anyone_to_start =
      std::any_of(tasks_.begin(), tasks_.end(), [](const Task& task) { return task.start_at != kNever; });
  if (is_anyone_to_start) return;
  is_over_ = true;
  deadline_ = kNever;
  if (!cause_.empty()) say(cause_);
  // If it was told to end, it does not wait forever for the reader of its output, either.
  if (told_by_ != 0) deadline_ = now() + setup_.options.grace_ns;
}

void Job::on_deadline() {
  deadline_ = kNever;
  if (is_over_) {
    out_.drop();
    own_err_.drop();
    return;
  }
  if (phase_ == Phase::kRunning) return end_stragglers();
  const bool is_closing = phase_ == Phase::kClosing;
  const std::string grace = seconds(setup_.options.grace_ns);
  for (const Task& task : tasks_) {
    if (task.pid <= 0) continue;
    say(plan_of(task).name() + (is_closing ? " did not end by itself within " + grace + ": sent SIGTERM"
                                           : " did not end within " + grace + ": killed"));
  }
  if (!is_closing) return send_all(SIGKILL);
  finish_with(0, "");
  end_all(SIGTERM);
}

void Job::begin_closing() {
  phase_ = Phase::kClosing;
  start_nobody();
  deadline_ = now() + setup_.options.grace_ns;
}

void Job::start_nobody() {
  for (Task& task : tasks_) task.start_at = kNever;
}

void Job::end_all(int signal) {
  start_nobody();
  send_all(signal);
  // A stopped task would not handle the signal.
  send_all(SIGCONT);
  deadline_ = now() + setup_.options.grace_ns;
}

void Job::finish_with(int status, std::string cause) {
  phase_ = Phase::kEnding;
  status_ = status;
  cause_ = std::move(cause);
}

void Job::send_all(int signal) const {
  for (const Task& task : tasks_) {
    if (task.pid > 0) kill(-task.pid, signal);
  }
}

bool Job::is_anyone_running() const {
  return std::any_of(tasks_.begin(), tasks_.end(), [](const Task& task) { return task.pid > 0; });
}

bool Job::is_anyone_else_left(const Task& task) const {
  return std::any_of(tasks_.begin(), tasks_.end(), [&](const Task& other) {
    return &other != &task && (other.pid > 0 || other.start_at != kNever);
  });
}

}  // namespace dist::launch
