// SPDX-License-Identifier: Apache-2.0
#include "capi/tools/info_check.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "capi/tools/info_certificates.hpp"
#include "capi/tools/info_text.hpp"
#include "core/base/memory.hpp"
#include "core/base/os/addresses.hpp"
#include "core/base/text.hpp"
#include "core/cluster/job_settings.hpp"
#include "core/cluster/link_security.hpp"

namespace dist::info {
namespace {

// ---- Host names ----

constexpr auto kLookUpTime = std::chrono::seconds(10);
constexpr std::size_t kMostHosts = 1024;
constexpr std::size_t kLookUpThreads = 8;

// Looks up host names on threads of its own, because the system can take long to answer.
class LookUps {
 public:
  explicit LookUps(std::vector<std::string> hosts) : shared_(std::make_shared<Shared>()) {
    shared_->hosts = std::move(hosts);
  }

  // The addresses of each host. A host without an answer is missing.
  std::map<std::string, HostAddresses> wait() {
    const std::size_t n = std::min(kLookUpThreads, shared_->hosts.size());
    for (std::size_t i = 0; i < n; ++i) std::thread(work, shared_).detach();
    std::unique_lock lock(shared_->mutex);
    shared_->answered.wait_for(lock, kLookUpTime,
                               [&] { return shared_->answers.size() == shared_->hosts.size(); });
    return shared_->answers;
  }

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable answered;
    std::vector<std::string> hosts;
    std::size_t next = 0;
    std::map<std::string, HostAddresses> answers;
  };

  static void work(const std::shared_ptr<Shared>& shared) {
    std::unique_lock lock(shared->mutex);
    while (shared->next < shared->hosts.size()) {
      const std::string host = shared->hosts[shared->next++];
      lock.unlock();
      HostAddresses answer = look_up(host);
      lock.lock();
      shared->answers.emplace(host, std::move(answer));
      shared->answered.notify_one();
    }
  }

  std::shared_ptr<Shared> shared_;
};

std::string quoted(const std::string& text) { return "\"" + std::string(Shown(text.c_str()).c_str()) + "\""; }

// ---- The checks ----

class Check {
 public:
  Check(const Report& report, Memory& memory)
      : report_(report), cluster_(report.cluster), memory_(memory), settings_(memory) {}

  Checked run() {
    check_cluster();
    const bool readable = check_settings();
    check_names();
    if (readable) {
      check_port();
      check_tls();
      check_exposed();
      check_cpus();
    }
    check_limits();
    check_clock();
    if (readable) check_trial();
    return std::move(checked_);
  }

 private:
  void add(Outcome outcome, const char* subject, const std::string& text) {
    checked_.findings.push_back({outcome, subject, one_line(text)});
  }
  void ok(const char* subject, const std::string& text) { add(Outcome::kOk, subject, text); }
  void note(const char* subject, const std::string& text) { add(Outcome::kNote, subject, text); }
  void problem(const char* subject, const std::string& text) { add(Outcome::kProblem, subject, text); }

  void check_cluster() {
    if (!cluster_.error.empty()) return problem("cluster", cluster_.text());
    if (check_addresses() == 0) ok("cluster", cluster_.text());
  }

  // Also collects the valid ones and their host names. Returns the number of problems.
  std::size_t check_addresses() {
    std::map<std::string, const ClusterTask*> seen;
    for (const ClusterTask& task : cluster_.tasks) {
      HostAndPort parsed;
      if (!parse_address(task.address.c_str(), 1, &parsed)) {
        report("cluster", "the address of " + task.name + " is " + quoted(task.address) + ", but must be " +
                              kAddressForm + ". Correct it in " + cluster_.source + ".");
        continue;
      }
      const auto [other, is_new] = seen.emplace(task.address, &task);
      if (!is_new) {
        report("cluster", other->second->name + " and " + task.name + " have the same address, " +
                              quoted(task.address) + ". Give each task its own in " + cluster_.source + ".");
      }
      addressed_.push_back(&task);
      if (!parsed.is_number()) hosts_.emplace(std::string(parsed.host), &task);
    }
    return end_of("cluster");
  }

  // Returns whether the variables could be read.
  bool check_settings() {
    if (!read_job_settings(&settings_).ok() || !check_security(settings_.security.view()).ok()) {
      problem("settings", core_error());
      return false;
    }
    const std::string name(settings_.link_module);
    needs_mpirun_ = name == "openmpi" || name == "mpich";
    options_.without_transport = needs_mpirun_;
    if (needs_mpirun_ && !has_module(name)) {
      problem("settings",
              "DIST_TRANSPORT is " + name + ", but libdist-" + name +
                  ".so is neither beside libdist-grpc.so nor in DIST_MODULE_FOLDER. Build libdist with "
                  "-Dmpi=enabled, or set DIST_TRANSPORT to auto.");
    } else if (needs_mpirun_) {
      note("settings",
           "DIST_TRANSPORT=" + name + " is not tried, because only processes that mpirun starts can use it");
    }
    const bool none = settings_.transport == DIST_TRANSPORT_NONE;
    if (none && cluster_.num_tasks > 1) {
      problem("settings", "DIST_TRANSPORT is none, but the cluster has " +
                              count_of(static_cast<long long>(cluster_.num_tasks), "task") +
                              ", which need a transport. Set it to auto or grpc, or unset it.");
    }
    if (none) options_.without_transport = true;
    if (const std::string why = try_settings(options_); !why.empty()) {
      problem("settings", why);
      return false;
    }
    ok("settings", "libdist accepts the variables that are set: " + environment());
    return true;
  }

  bool has_module(const std::string& name) const {
    return std::any_of(report_.modules.begin(), report_.modules.end(),
                       [&](const Available& each) { return each.name == name && each.is_available; });
  }

  std::string environment() const {
    std::string names;
    for (const std::string& each : report_.environment) names += (names.empty() ? "" : ", ") + each;
    return names.empty() ? "none" : names;
  }

  void check_names() {
    std::vector<std::string> names;
    for (const auto& [host, task] : hosts_) {
      if (names.size() < kMostHosts) names.push_back(host);
    }
    if (names.empty()) return ok("names", "the cluster has no host names to look up");
    answers_ = LookUps(names).wait();
    for (const std::string& host : names) {
      const auto answer = answers_.find(host);
      const bool answered = answer != answers_.end();
      if (answered && !answer->second.list.empty()) continue;
      report("names", "the host name " + quoted(host) + " of " + hosts_.at(host)->name +
                          " does not resolve: " +
                          (answered ? answer->second.why : "the system has not answered within 10 s") +
                          ". Correct it in " + cluster_.source + ", or add it to DNS or /etc/hosts.");
    }
    if (end_of("names") > 0) return;
    ok("names", count_of(static_cast<long long>(names.size()), "host name") + " resolved" +
                    (names.size() < hosts_.size() ? ", and the others were not looked up" : ""));
  }

  std::vector<std::string> addresses_of(const HostAndPort& parsed) {
    const std::string host(parsed.host);
    if (parsed.is_number()) return {host};
    if (const auto answer = answers_.find(host); answer != answers_.end()) return answer->second.list;
    return LookUps({host}).wait()[host].list;
  }

  // Whether this process can listen where its peers look for it.
  void check_port() {
    const bool is_bound = !settings_.bind_address.empty();
    const ClusterTask* const own = cluster_.own_task();
    if (!is_bound && own == nullptr) return ok("port", "this process needs no fixed port");
    // During a rendezvous, worker 0 listens on the port of the rendezvous.
    const std::string address(is_bound ? settings_.bind_address
                                       : default_bind_address(memory_, own->address.c_str()));
    const std::string source = is_bound ? "DIST_BIND_ADDRESS" : cluster_.source;
    HostAndPort parsed;
    const bool any_port = is_bound && cluster_.is_rendezvous();
    if (!parse_address(address.c_str(), any_port ? 0 : 1, &parsed)) {
      // That of the cluster has been reported.
      if (is_bound)
        problem("port", source + " is " + quoted(address) + ", but must be " + kAddressForm + ".");
      return;
    }
    std::string why = "its host name does not resolve";
    for (const std::string& each : addresses_of(parsed)) {
      why = why_not_bind(each, static_cast<int>(parsed.port));
      if (why.empty())
        return ok("port", "this process can listen on " + quoted(address) + ", from " + source);
    }
    problem("port", "this process cannot listen on " + quoted(address) + ", from " + source + ": " + why +
                        ". End the program that uses the port (ss -ltnp lists them), or correct " + source +
                        ".");
  }

  void check_tls() {
    if (!settings_.security.view().tls()) return ok("tls", "no certificates are set");
    std::string host;
    HostAndPort parsed;
    if (const ClusterTask* const own = cluster_.own_task();
        own != nullptr && parse_address(own->address.c_str(), 1, &parsed)) {
      host = parsed.host;
    }
    const Certificates certificates = check_certificates(settings_.security, host);
    options_.without_tls = !certificates.fit_loopback;
    if (!certificates.is_checked)
      return note("tls", "the certificate was not checked, because dist-info was built without OpenSSL");
    if (!certificates.why.empty()) return problem("tls", certificates.why);
    ok("tls", "the certificate " + quoted(std::string(settings_.security.certificate_file)) +
                  " is valid, and the key belongs to it" +
                  (host.empty() ? "" : "; it is for " + quoted(host)));
  }

  // Whether libdist agrees to send anything to these addresses.
  void check_exposed() {
    Exposed exposed;
    for (const ClusterTask* const task : addressed_)
      exposed.add(("the address of " + task->name).c_str(), task->address.c_str());
    if (!settings_.bind_address.empty()) exposed.add("DIST_BIND_ADDRESS", settings_.bind_address.c_str());
    if (cluster_.num_tasks > 1 &&
        !check_exposure(settings_.security.view(), exposed, "workers of the job").ok())
      return problem("security", core_error());
    const char* const how = settings_.security.view().tls() ? "encrypted by TLS" : "unencrypted";
    ok("security", std::string("connections are ") +
                       (exposed.any() || settings_.security.view().tls() ? how : "on loopback only") +
                       (settings_.security.secret.empty() ? ", without a secret" : ", with a secret"));
  }

  void check_cpus() {
    const int usable = report_.cpus.usable;
    if (settings_.num_replicas > usable) {
      return note("cpus", "DIST_REPLICAS is " + std::to_string(settings_.num_replicas) +
                              ", but this process can use " + count_of(usable, "CPU") +
                              ", so replicas share CPUs and are slow");
    }
    ok("cpus", count_of(usable, "CPU") + " for " +
                   (settings_.num_replicas == 0 ? std::string("one replica each")
                                                : count_of(settings_.num_replicas, "replica")));
  }

  // A worker of 8 tasks with 2 replicas has been seen to use 47 descriptors and 18 threads. These numbers
  // leave room.
  void check_limits() {
    constexpr uint64_t kOwnFiles = 64;
    constexpr uint64_t kFilesPerTask = 8;
    constexpr uint64_t kOwnThreads = 32;
    const Limit* const files = report_.limit("NOFILE");
    const uint64_t needed = kOwnFiles + kFilesPerTask * cluster_.num_tasks;
    if (files != nullptr && files->most && *files->most < needed) {
      report("limits", "RLIMIT_NOFILE is " + std::to_string(*files->most) + ", but a worker of " +
                           count_of(static_cast<long long>(cluster_.num_tasks), "task") + " needs about " +
                           std::to_string(needed) + " descriptors. Raise it with: ulimit -n " +
                           std::to_string(needed));
    }
    const Limit* const threads = report_.limit("NPROC");
    const uint64_t replicas = static_cast<uint64_t>(std::max(settings_.num_replicas, report_.cpus.usable));
    // Linux does not apply it to root.
    if (threads != nullptr && threads->most && *threads->most < replicas + kOwnThreads && geteuid() != 0) {
      report("limits", "RLIMIT_NPROC is " + std::to_string(*threads->most) + ", but a worker with " +
                           count_of(static_cast<long long>(replicas), "replica") + " needs about " +
                           std::to_string(replicas + kOwnThreads) +
                           " threads, besides the other processes of this user. Raise it with ulimit -u.");
    }
    if (end_of("limits") > 0) return;
    if (const Limit* const locked = report_.limit("MEMLOCK");
        needs_mpirun_ && locked != nullptr && locked->most) {
      return note("limits", "RLIMIT_MEMLOCK is " + std::to_string(*locked->most) +
                                " bytes. Network adapters that " + std::string(settings_.link_module) +
                                " uses may need more: ulimit -l unlimited");
    }
    ok("limits", "descriptors and threads suffice");
  }

  void check_clock() {
    constexpr std::time_t kFirstYear = 1735689600;  // 2025
    constexpr int64_t kSlowNs = 500;
    const std::time_t now = std::time(nullptr);
    std::tm parts = {};
    char text[40] = "";
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&now, &parts));
    if (now < kFirstYear) {
      return problem("clock",
                     std::string("the system's clock shows ") + text +
                         ", which is in the past, so certificates are not valid yet. Set the clock.");
    }
    if (report_.clock.read_ns > kSlowNs) {
      return note("clock", "reading the clock source " + report_.clock.source + " takes " +
                               std::to_string(report_.clock.read_ns) + " ns, which slows down collectives");
    }
    if (settings_.security.view().tls() && !report_.clock.is_synchronized)
      return note("clock", "the system's clock is not synchronized, and certificates depend on it: " +
                               std::string(text));
    ok("clock", text);
  }

  void check_trial() {
    checked_.trial = run_trial(options_);
    checked_.has_trial = true;
    const Trial& trial = checked_.trial;
    if (!trial.error.empty())
      return problem("trial", "two workers on 127.0.0.1 cannot work together: " + trial.error);
    const auto ms = [](int64_t ns) { return std::to_string((ns + 500'000) / 1'000'000) + " ms"; };
    ok("trial",
       "two workers on 127.0.0.1 have summed tensors over " + trial.transport + ": " +
           DurationText(trial.sum_ns).text + " for one of " + std::to_string(kTrialTensorBytes) + " bytes; " +
           ms(trial.start_ns) + " in total" +
           (options_.without_tls ? "; without TLS, because the certificate is not for 127.0.0.1" : ""));
  }

  // Reports a problem of which there may be many. end_of() returns how many there were.
  void report(const char* subject, const std::string& text) {
    constexpr std::size_t kMost = 8;
    if (++repeated_ <= kMost) problem(subject, text);
    unreported_ = repeated_ > kMost ? repeated_ - kMost : 0;
  }
  std::size_t end_of(const char* subject) {
    if (unreported_ > 0)
      problem(subject,
              count_of(static_cast<long long>(unreported_), "more problem") + " like the previous ones");
    unreported_ = 0;
    return std::exchange(repeated_, 0);
  }

  const Report& report_;
  const Cluster& cluster_;
  Memory& memory_;
  JobSettings settings_;
  TrialOptions options_;
  bool needs_mpirun_ = false;                        // the transport
  std::vector<const ClusterTask*> addressed_;        // tasks with valid addresses
  std::map<std::string, const ClusterTask*> hosts_;  // names, with the first task of each
  std::map<std::string, HostAddresses> answers_;
  std::size_t repeated_ = 0;
  std::size_t unreported_ = 0;
  Checked checked_;
};

const char* word_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk: return "ok";
    case Outcome::kNote: return "note";
    case Outcome::kProblem: break;
  }
  return "problem";
}

}  // namespace

bool Checked::is_ok() const {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& each) { return each.outcome == Outcome::kProblem; });
}

Checked check_environment(const Report& report) {
  Ref<Memory> memory;
  if (const Status created = create_memory({}, "allocator", &memory); !created.ok()) throw std::bad_alloc();
  return Check(report, *memory).run();
}

std::string text_of(const Checked& checked) {
  std::string text;
  for (const Finding& each : checked.findings) {
    std::string line = word_of(each.outcome);
    line.resize(9, ' ');
    text += line + each.subject + ": " + each.text + "\n";
  }
  return text;
}

void write_json(const Checked& checked, JsonWriter& json) {
  json.Key("ok");
  json.Bool(checked.is_ok());
  json.Key("findings");
  json.StartArray();
  for (const Finding& each : checked.findings) {
    json.StartObject();
    write_text(json, "outcome", word_of(each.outcome));
    write_text(json, "subject", each.subject);
    write_text(json, "text", each.text);
    json.EndObject();
  }
  json.EndArray();
  json.Key("trial");
  if (!checked.has_trial || !checked.trial.error.empty()) {
    json.Null();
    return;
  }
  json.StartObject();
  write_text(json, "transport", checked.trial.transport);
  json.Key("all_reduce_ns");
  json.Int64(checked.trial.sum_ns);
  json.Key("total_ns");
  json.Int64(checked.trial.start_ns);
  json.EndObject();
}

}  // namespace dist::info
