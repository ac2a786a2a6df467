// SPDX-License-Identifier: Apache-2.0
// Each server is a new instance of the program, because a process that has used gRPC cannot fork one.
#include "tests/bench/servers/job.hpp"
#include <dist/experimental/coordinator.h>
#include <dist/experimental/server.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace bench::servers {
namespace {

constexpr char kParameterServer[] = "--ps", kWorker[] = "--worker";
constexpr int kFailed = 2;
constexpr std::size_t kSchemeLength = 7;  // length of "grpc://"

[[noreturn]] void say(const std::string& text) {
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) _exit(kFailed);
  for (;;) pause();
}

[[noreturn]] void serve_variables(std::size_t bytes) {
  dist::server server = dist::server::local();
  server.start();
  const PlainServer plain(bytes);
  say(server.target().substr(kSchemeLength) + " " + plain.address());
}

[[noreturn]] void serve_closures() {
  dist::server server = dist::server::local();
  server.add("nothing", [](const dist::closure&, const dist::value&) { return dist::value(); });
  server.add("push", [](const dist::closure& closure, const dist::value& given) {
    closure.assign("v", DIST_ASSIGN_ADD, given);
    return dist::value();
  });
  server.start();
  say(server.target().substr(kSchemeLength));
}

dist::strategy strategy_of(const std::string& parameter_server, const std::string& worker) {
  const auto spec = dist::cluster_spec::from_jobs({{"ps", {parameter_server}, {}}, {"worker", {worker}, {}}});
  const auto resolver = dist::cluster_resolver::simple(spec);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_worker_options with = DIST_WORKER_OPTIONS_INIT;
  options.worker = &with;
  options.kind = DIST_STRATEGY_PARAMETER_SERVER;
  with.cluster_resolver = resolver.get();
  return dist::strategy(options);
}

dist_coordinator_options options_of(int closures_at_a_time) {
  dist_coordinator_options options = DIST_COORDINATOR_OPTIONS_INIT;
  options.closures_per_worker = closures_at_a_time;
  return options;
}

}  // namespace

bool be_server(int argc, char** argv) {
  if (argc != 3) return false;
  if (std::strcmp(argv[1], kParameterServer) == 0) serve_variables(std::strtoul(argv[2], nullptr, 10));
  if (std::strcmp(argv[1], kWorker) == 0) serve_closures();
  return false;
}

Server::Server(const char* role, std::size_t bytes) {
  int ends[2];
  char text[256] = "";
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no file descriptor left");
  const std::string number = std::to_string(bytes);
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && dup2(ends[1], STDOUT_FILENO) >= 0)
      execl("/proc/self/exe", "dist_bench_servers", role, number.c_str(), static_cast<char*>(nullptr));
    _exit(kFailed);
  }
  close(ends[1]);
  const ssize_t length = process_ < 0 ? -1 : read(ends[0], text, sizeof text - 1);
  close(ends[0]);
  if (length <= 0) throw std::runtime_error("a server has not started");
  address_ = text;
  const std::size_t gap = address_.find(' ');
  if (gap == std::string::npos) return;
  plain_address_ = address_.substr(gap + 1);
  address_.erase(gap);
}

Server::~Server() {
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

Job::Job(std::size_t bytes, int closures_at_a_time)
    : data_(bytes),
      pulled_(bytes),
      parameter_server_(kParameterServer, bytes),
      worker_(kWorker, 0),
      here_(dist::get_strategy()),
      strategy_(strategy_of(parameter_server_.address(), worker_.address())),
      coordinator_(strategy_, options_of(closures_at_a_time)),
      plain_(parameter_server_.plain_address()) {
  coordinator_.create_variable("v", tensor());
}

dist::const_tensor Job::tensor() const {
  return {data_.data(), DIST_F32, {static_cast<int64_t>(data_.size() / sizeof(float))}};
}

std::vector<pid_t> Job::processes() const {
  return {getpid(), parameter_server_.process(), worker_.process()};
}

void Job::renew() {
  ++renewed_;
  for (std::size_t i = 0; i < data_.size() / sizeof(float); ++i) {
    const auto element = static_cast<float>(renewed_ + static_cast<int>(i % 1000));
    std::memcpy(data_.data() + i * sizeof element, &element, sizeof element);
  }
  given_ = dist::value(here_, tensor());
}

void Job::check() const {
  if (std::memcmp(got_.tensor().data<float>(), data_.data(), data_.size()) != 0)
    throw std::runtime_error("libdist: wrong value on the parameter server");
  if (pulled_ != data_) throw std::runtime_error("plain gRPC: wrong value on the server");
}

void Job::run_closures(int closures, bool push) {
  const float one = 1;
  const dist::value given = push ? dist::value(here_, dist::const_tensor(&one, 1)) : dist::value();
  const char* const name = push ? "push" : "nothing";
  for (int i = 0; i < closures; ++i) coordinator_.schedule(name, given);
  coordinator_.join();
}

void Job::check_added(int closures) {
  float before = 0;
  std::memcpy(&before, data_.data(), sizeof before);
  pull();
  if (*got_.tensor().data<float>() != before + static_cast<float>(closures))
    throw std::runtime_error("libdist: closures have not run once each");
}

}  // namespace bench::servers
