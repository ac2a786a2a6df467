// SPDX-License-Identifier: Apache-2.0
// dist_bench_servers: variables of a parameter server pushed and pulled, beside a unary call of plain gRPC that copies the
// bytes into or out of memory that is there, in turns of one run; and closures a second. Server, worker and coordinator are
// three processes on loopback; plain gRPC's server is in the parameter server's process.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "dist/dist.hpp"

namespace {

constexpr int kMissedFloor = 1, kFailed = 2;

using Clock = std::chrono::steady_clock;

void copy(const grpc::ByteBuffer& from, std::vector<std::byte>& to) {
  std::vector<grpc::Slice> slices;
  (void)from.Dump(&slices);
  std::size_t at = 0;
  for (const grpc::Slice& each : slices) {
    std::memcpy(to.data() + at, each.begin(), std::min(each.size(), to.size() - at));
    at += each.size();
  }
}

grpc::Slice view(const std::vector<std::byte>& of) {
  return {const_cast<std::byte*>(of.data()), of.size(), grpc::Slice::STATIC_SLICE};
}

// The limit: what a good programmer writes in twenty lines for one variable.
class Plain final : public grpc::CallbackGenericService {
 public:
  explicit Plain(std::size_t bytes) : resident_(bytes) {}

 private:
  class Call final : public grpc::ServerGenericBidiReactor {
   public:
    Call(std::vector<std::byte>& resident, bool pushes) : resident_(resident), pushes_(pushes) {
      StartRead(&in_);
    }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish({});
      if (pushes_) copy(in_, resident_);
      const grpc::Slice answer = pushes_ ? grpc::Slice("k") : view(resident_);
      out_ = grpc::ByteBuffer(&answer, 1);
      StartWriteAndFinish(&out_, {}, {});
    }
    void OnDone() override { delete this; }

   private:
    std::vector<std::byte>& resident_;
    const bool pushes_;
    grpc::ByteBuffer in_, out_;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new Call(resident_, context->method() == "/bench/push");
  }

  std::vector<std::byte> resident_;
};

// The program once more, as a server: a process that has used gRPC cannot fork one. It says where it serves, and does so until
// the bench ends.
std::string start(const char* role, std::size_t bytes) {
  int ends[2];
  char text[256] = "";
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const std::string number = std::to_string(bytes);
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], STDOUT_FILENO);
    execl("/proc/self/exe", "dist_bench_servers", role, number.c_str(), static_cast<char*>(nullptr));
    _exit(kFailed);
  }
  close(ends[1]);
  if (read(ends[0], text, sizeof text - 1) <= 0) throw std::runtime_error("a server has not started");
  close(ends[0]);
  return text;
}

void say(const std::string& text) {
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) _exit(kFailed);
  for (;;) pause();
}

void serve_variables(std::size_t bytes) {
  dist::server server = dist::server::local();
  server.start();
  Plain plain(bytes);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&plain);
  builder.SetMaxReceiveMessageSize(-1);
  const auto running = builder.BuildAndStart();
  say(server.target().substr(7) + " 127.0.0.1:" + std::to_string(port));
}

void serve_closures() {
  dist::server server = dist::server::local();
  server.add("nothing", [](const dist::closure&, const dist::value&) { return dist::value(); });
  server.add("push", [](const dist::closure& closure, const dist::value& given) {
    closure.assign("v", DIST_ASSIGN, given);
    return dist::value();
  });
  server.start();
  say(server.target().substr(7));
}

struct Row {
  const char* what;
  std::size_t bytes;
  double floor;  // of libdist's speed by plain gRPC's; 0: none
};

class Bench {
 public:
  explicit Bench(std::size_t bytes) : here_(dist::get_strategy()), data_(bytes), into_(bytes), strategy_(1) {
    const std::string both = start("--ps", bytes);
    const std::string worker = start("--worker", 0);
    const std::size_t gap = both.find(' ');
    const auto spec =
        dist::cluster_spec::from_jobs({{"ps", {both.substr(0, gap)}, {}}, {"worker", {worker}, {}}});
    const auto resolver = dist::cluster_resolver::simple(spec);
    dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
    options.kind = DIST_STRATEGY_PARAMETER_SERVER;
    options.cluster_resolver = resolver.get();
    strategy_ = dist::strategy(options);
    chief_ = std::make_unique<dist::coordinator>(strategy_);
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    stub_ = std::make_unique<grpc::GenericStub>(
        grpc::CreateCustomChannel(both.substr(gap + 1), grpc::InsecureChannelCredentials(), arguments));
    const dist::const_tensor tensor(data_.data(), DIST_U8, {static_cast<int64_t>(bytes)});
    value_ = dist::value(here_, tensor);
    chief_->create_variable("v", tensor);
  }

  void libdist(bool pushes) {
    pushes ? chief_->assign("v", DIST_ASSIGN, value_) : static_cast<void>(chief_->read("v"));
  }
  void plain(bool pushes) {
    grpc::ClientContext context;
    const grpc::Slice slice = pushes ? view(data_) : grpc::Slice("p");
    grpc::ByteBuffer in(&slice, 1), out;
    std::promise<bool> ended;
    stub_->UnaryCall(&context, pushes ? "/bench/push" : "/bench/pull", {}, &in, &out,
                     [&](const grpc::Status& status) { ended.set_value(status.ok()); });
    if (!ended.get_future().get()) throw std::runtime_error("plain gRPC failed");
    if (!pushes) copy(out, into_);
  }
  double closures_a_second(const char* name, int n) {
    const auto begin = Clock::now();
    for (int i = 0; i < n; ++i) chief_->schedule(name, *name == 'p' ? value_ : dist::value());
    chief_->join();
    return n / std::chrono::duration<double>(Clock::now() - begin).count();
  }

 private:
  dist::strategy_ref here_;
  std::vector<std::byte> data_, into_;
  dist::strategy strategy_;
  std::unique_ptr<dist::coordinator> chief_;
  std::unique_ptr<grpc::GenericStub> stub_;
  dist::value value_;
};

template <class Do>
double microseconds(Do&& one) {
  const auto begin = Clock::now();
  one();
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double median(std::vector<double>& times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

int run(bool quick) {
  constexpr Row kRows[] = {{"push", 4, 0.7},       {"pull", 4, 0.7},      {"push", 65536, 0},
                           {"pull", 65536, 0},     {"push", 1 << 20, 0},  {"pull", 1 << 20, 0},
                           {"push", 1 << 24, 0.8}, {"pull", 1 << 24, 0.8}};
  bool missed = false;
  std::printf("one parameter server, medians of calls in turns; speed: libdist's by plain gRPC's\n");
  std::printf("%-6s %10s %12s %12s %8s %6s\n", "", "bytes", "libdist us", "plain us", "speed", "floor");
  std::unique_ptr<Bench> bench;
  std::size_t bytes = 0;
  for (const Row& row : kRows) {
    if (quick && row.bytes > 65536) break;
    if (row.bytes != bytes) {
      bench.reset();
      bench = std::make_unique<Bench>(bytes = row.bytes);
    }
    const int turns = quick ? 3 : row.bytes > 1'000'000 ? 40 : 1000;
    const bool pushes = *row.what == 'p' && row.what[2] == 's';
    std::vector<double> libdist, plain;
    for (int i = 0; i < turns; ++i) {
      libdist.push_back(microseconds([&] { bench->libdist(pushes); }));
      plain.push_back(microseconds([&] { bench->plain(pushes); }));
    }
    const double a = median(libdist), b = median(plain);
    std::printf("%-6s %10zu %12.1f %12.1f %8.2f ", row.what, row.bytes, a, b, b / a);
    row.floor > 0 ? std::printf("%6.2f\n", row.floor) : std::printf("%6s\n", "-");
    missed = missed || (!quick && b / a < row.floor);
  }
  bench.reset();
  bench = std::make_unique<Bench>(4);
  const int closures = quick ? 20 : 5000;
  std::printf("closures a second, one worker, one at a time: %.0f that do nothing, %.0f that push 4 bytes\n",
              bench->closures_a_second("nothing", closures), bench->closures_a_second("push", closures));
  return missed ? kMissedFloor : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--ps") == 0) serve_variables(std::strtoul(argv[2], nullptr, 10));
  if (argc == 3 && std::strcmp(argv[1], "--worker") == 0) serve_closures();
  const bool quick = argc == 2 && std::strcmp(argv[1], "--quick") == 0;
  if (argc > 2 || (argc == 2 && !quick)) {
    std::fprintf(
        stderr,
        "usage: dist_bench_servers [--quick]\n"
        "Ends with 1 where a floor was missed, with 2 where anything failed; --quick judges nothing.\n");
    return kFailed;
  }
  try {
    return run(quick);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dist_bench_servers: %s\n", error.what());
    return kFailed;
  }
}
