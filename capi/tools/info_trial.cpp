// SPDX-License-Identifier: Apache-2.0
#include "capi/tools/info_trial.hpp"

#include <dist/dist.h>
#include <dist/experimental/rendezvous.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "capi/tools/info_text.hpp"
#include "capi/tools/local_setup.hpp"
#include "capi/tools/process.hpp"
#include "core/base/os/clock.hpp"

namespace dist::info {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
// The workers report an error of their own before the whole trial ends.
constexpr int64_t kWorkerNs = 20 * kSecond;
constexpr int64_t kTrialNs = 30 * kSecond;
constexpr std::size_t kMostOutput = 65536;

// ---- The processes ----

constexpr int kWorkers = 2;
constexpr std::size_t kElements = kTrialTensorBytes / sizeof(float);
constexpr int kRounds = 21;

struct Sums {
  int64_t median_ns = 0;
};

dist_status sum(dist_replica* replica, void* user_data) {
  std::array<int64_t, kRounds> times;
  std::vector<float> data(kElements);
  const int64_t shape[] = {static_cast<int64_t>(kElements)};
  const dist_tensor tensor = {data.data(), DIST_F32, 1, shape, nullptr};
  for (int64_t& time : times) {
    std::fill(data.begin(), data.end(), static_cast<float>(dist_replica_id(replica) + 1));
    const int64_t begin_ns = steady_now_ns();
    const dist_status status =
        dist_all_reduce(replica, DIST_REDUCE_SUM, &tensor, &tensor, 1, nullptr, nullptr);
    if (status != DIST_OK) return status;
    time = steady_now_ns() - begin_ns;
    const auto is_wrong = [](float each) { return each != 3.0F; };  // 1 + 2
    if (std::any_of(data.begin(), data.end(), is_wrong)) return dist_fail(DIST_INTERNAL, "the sum is wrong");
  }
  std::sort(times.begin(), times.end());
  static_cast<Sums*>(user_data)->median_ns = times[kRounds / 2];
  return DIST_OK;
}

void append(const char* text, std::size_t size, void* to) {
  static_cast<std::string*>(to)->append(text, size);
}

// The name of what moves the data to the other worker.
std::string transport_of(dist_strategy* strategy) {
  const char* const named = getenv("DIST_TRANSPORT");
  if (named != nullptr && *named != '\0' && std::strcmp(named, "auto") != 0) return one_line(named);
  std::string text;
  if (dist_strategy_explain(strategy, append, &text) != DIST_OK) return "unknown";
  return text.find("by shared memory of") != std::string::npos ? "shm" : "grpc";
}

dist_status create(dist_cluster_resolver* resolver, dist_strategy** out) {
  dist_worker_options worker = DIST_WORKER_OPTIONS_INIT;
  worker.cluster_resolver = resolver;
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.kind = DIST_STRATEGY_MULTI_WORKER_MIRRORED;
  options.num_replicas = 1;
  options.timeout_ns = kWorkerNs;
  options.worker = &worker;
  return dist_strategy_create(&options, out);
}

// Prints the transport and the time of a sum, on one line.
dist_status work(int rank, const char* address) {
  dist_rendezvous_options meeting = DIST_RENDEZVOUS_OPTIONS_INIT;
  meeting.has_rank = 1;
  meeting.rank = rank;
  meeting.size = kWorkers;
  meeting.address = address;
  meeting.job_name = "dist-info";
  meeting.timeout_ns = kWorkerNs;
  dist_cluster_resolver* resolver = nullptr;
  dist_status status = dist_cluster_resolver_create_rendezvous(&meeting, nullptr, &resolver);
  if (status != DIST_OK) return status;
  dist_strategy* strategy = nullptr;
  status = create(resolver, &strategy);
  dist_cluster_resolver_destroy(resolver);
  if (status != DIST_OK) return status;
  Sums sums;
  status = dist_run(strategy, sum, &sums, nullptr);
  const std::string why = status == DIST_OK ? "" : dist_last_error();
  if (status == DIST_OK)
    std::printf("%s %lld\n", transport_of(strategy).c_str(), static_cast<long long>(sums.median_ns));
  const dist_status ended = dist_strategy_destroy(strategy);
  return status == DIST_OK ? ended : dist_fail(status, why.c_str());
}

// The settings are checked and this process listens when the strategy is created. It ends before it meets
// anybody.
dist_status create_only(const char* own, const char* other) {
  const char* const addresses[] = {own, other};
  const dist_cluster_job job = {"worker", addresses, nullptr, 2};
  dist_cluster_spec* spec = nullptr;
  dist_status status = dist_cluster_spec_create(&job, 1, nullptr, &spec);
  if (status != DIST_OK) return status;
  dist_cluster_resolver_options options = DIST_CLUSTER_RESOLVER_OPTIONS_INIT;
  options.task_type = "worker";
  options.has_task_id = 1;
  dist_cluster_resolver* resolver = nullptr;
  status = dist_cluster_resolver_create_simple(spec, &options, &resolver);
  dist_cluster_spec_destroy(spec);
  if (status != DIST_OK) return status;
  dist_strategy* strategy = nullptr;
  return create(resolver, &strategy);
}

// ---- The process that starts them ----

struct Process {
  launch::Started started;
  std::string out, err;
};

// The environment of the job without its cluster: the trial has a cluster of its own.
launch::Environment trial_environment(const TrialOptions& options) {
  launch::Environment environment;
  for (const char* const name :
       {"TF_CONFIG", "DIST_RENDEZVOUS", "DIST_RANK", "DIST_SIZE", "DIST_JOB_NAME", "DIST_BIND_ADDRESS",
        "DIST_REPLICAS", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    environment.unset(name);
  }
  if (options.without_transport) environment.unset("DIST_TRANSPORT");
  if (options.without_tls) {
    for (const char* const name : {"DIST_TLS_CA", "DIST_TLS_CERTIFICATE", "DIST_TLS_KEY"})
      environment.unset(name);
  }
  return environment;
}

class Processes {
 public:
  Processes() = default;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() {
    for (const Process& each : all_) {
      if (each.started.pid <= 0) continue;
      kill(-each.started.pid, SIGKILL);
      waitpid(each.started.pid, nullptr, 0);
    }
  }

  // Returns why it cannot be started, or an empty text.
  std::string start(const std::vector<std::string>& arguments, launch::Environment& environment) {
    launch::Program program;
    program.path = "/proc/self/exe";
    std::vector<std::string> words{"dist-info", kTrialArgument};
    words.insert(words.end(), arguments.begin(), arguments.end());
    for (std::string& each : words) program.arguments.push_back(each.data());
    program.arguments.push_back(nullptr);
    program.shell_arguments = program.arguments;
    launch::Inherited inherited = {};
    sigprocmask(SIG_SETMASK, nullptr, &inherited.mask);
    sigaction(SIGPIPE, nullptr, &inherited.pipe_action);
    Process made;
    made.started = launch::start_process(program, environment, inherited, keeper_, true);
    if (made.started.pid < 0)
      return std::string("cannot start a process: ") +
             std::strerror(made.started.error != 0 ? made.started.error : errno);
    all_.push_back(std::move(made));
    return "";
  }

  // Waits until all have ended. Returns why they have failed, or an empty text.
  std::string finish() {
    const int64_t deadline_ns = steady_now_ns() + kTrialNs;
    while (read_some(deadline_ns)) continue;
    std::string why;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const std::string failure = end(all_[i], steady_now_ns() >= deadline_ns);
      if (failure.empty()) continue;
      why +=
          (why.empty() ? "" : "; ") + (all_.size() > 1 ? "worker " + std::to_string(i) + ": " : "") + failure;
    }
    return why;
  }

  const std::vector<Process>& all() const { return all_; }

 private:
  static void read_from(launch::Fd* from, std::string* to) {
    char bytes[4096];
    const ssize_t n = read(from->get(), bytes, sizeof bytes);
    if (n > 0 && to->size() < kMostOutput) to->append(bytes, static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) from->reset();
  }

  // Returns false if there is nothing left to read, or no time.
  bool read_some(int64_t deadline_ns) {
    std::vector<pollfd> streams;
    std::vector<std::pair<launch::Fd*, std::string*>> owners;
    for (Process& each : all_) {
      for (const auto& owner :
           {std::pair(&each.started.out, &each.out), std::pair(&each.started.err, &each.err)}) {
        if (!owner.first->is_open()) continue;
        streams.push_back({owner.first->get(), POLLIN, 0});
        owners.push_back(owner);
      }
    }
    const int64_t left_ms = (deadline_ns - steady_now_ns()) / 1'000'000;
    if (streams.empty() || left_ms <= 0) return false;
    if (poll(streams.data(), streams.size(), static_cast<int>(left_ms)) < 0) return errno == EINTR;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (streams[i].revents != 0) read_from(owners[i].first, owners[i].second);
    }
    return true;
  }

  static std::string end(Process& process, bool late) {
    if (late) kill(-process.started.pid, SIGKILL);
    int status = 0;
    while (waitpid(process.started.pid, &status, 0) < 0 && errno == EINTR) continue;
    process.started.pid = -1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
    if (late) return "it has not ended within " + std::to_string(kTrialNs / kSecond) + " s";
    if (WIFSIGNALED(status)) return std::string("it was killed by signal ") + strsignal(WTERMSIG(status));
    return process.err.empty() ? "it ended with status " + std::to_string(WEXITSTATUS(status))
                               : one_line(process.err.substr(0, process.err.find_last_not_of('\n') + 1));
  }

  // Not started: the processes start no others, so that it is enough that they die with this one.
  launch::Keeper keeper_;
  std::vector<Process> all_;
};

std::string loopback(const launch::HeldPort& port) { return "127.0.0.1:" + std::to_string(port.port); }

// "shm 12345\n"
bool read_result(const std::string& line, Trial* out) {
  const std::size_t blank = line.rfind(' ');
  if (blank == std::string::npos) return false;
  out->transport = one_line(line.substr(0, blank));
  const char* const end = line.data() + line.size();
  return std::from_chars(line.data() + blank + 1, end, out->sum_ns).ec == std::errc();
}

}  // namespace

Trial run_trial(const TrialOptions& options) {
  Trial trial;
  std::vector<launch::HeldPort> ports;
  launch::Environment environment = trial_environment(options);
  std::string secret;
  const char* const own_secret = getenv("DIST_JOB_SECRET");
  const bool has_secret = own_secret != nullptr && *own_secret != '\0';
  if (!launch::hold_free_ports(1, &ports) || (!has_secret && !launch::make_secret(&secret))) {
    trial.error = std::string("cannot get a free port of 127.0.0.1 or random bits: ") + std::strerror(errno);
    return trial;
  }
  if (!has_secret) environment.set("DIST_JOB_SECRET", secret);
  const int64_t begin_ns = steady_now_ns();
  Processes processes;
  for (int rank = 0; rank < kWorkers && trial.error.empty(); ++rank)
    trial.error = processes.start({"worker", std::to_string(rank), loopback(ports[0])}, environment);
  if (trial.error.empty()) trial.error = processes.finish();
  trial.start_ns = steady_now_ns() - begin_ns;
  if (trial.error.empty() && !read_result(processes.all().front().out, &trial))
    trial.error = "worker 0 has reported no result";
  return trial;
}

std::string try_settings(const TrialOptions& options) {
  std::vector<launch::HeldPort> ports;
  if (!launch::hold_free_ports(2, &ports))
    return std::string("cannot get free ports of 127.0.0.1: ") + std::strerror(errno);
  launch::Environment environment = trial_environment(options);
  Processes processes;
  const std::string why = processes.start({"settings", loopback(ports[0]), loopback(ports[1])}, environment);
  return why.empty() ? processes.finish() : why;
}

int run_trial_process(int argc, char** argv) {
  // In case dist-info is stopped or fails to end its processes.
  alarm(static_cast<unsigned>(2 * kTrialNs / kSecond));
  dist_status status = DIST_INVALID_ARGUMENT;
  if (argc == 5 && std::strcmp(argv[2], "worker") == 0) {
    status = work(std::strcmp(argv[3], "0") == 0 ? 0 : 1, argv[4]);
  } else if (argc == 5 && std::strcmp(argv[2], "settings") == 0) {
    status = create_only(argv[3], argv[4]);
  } else {
    (void)dist_fail(status, "dist-info starts these processes itself");
  }
  if (status != DIST_OK) std::fprintf(stderr, "%s\n", dist_last_error());
  std::fflush(stdout);
  // Without destructors: the strategy of create_only() would wait for a worker that does not exist.
  _exit(status == DIST_OK ? 0 : 1);
}

}  // namespace dist::info
