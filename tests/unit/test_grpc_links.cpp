// SPDX-License-Identifier: Apache-2.0
// core/net/grpc: which peers are accepted (other jobs, second starts, certificates), and the options of a
// network.
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <sstream>
#include <utility>

#include "core/net/grpc/link.hpp"
#include "core/net/grpc/listener.hpp"
#include "tests/skip.h"
#include "tests/unit/grpc_stranger.hpp"
#include "tests/unit/grpc_support.hpp"
#include "tests/unit/plain_error.hpp"

namespace dist {
namespace {

using End = Transfer::End;
using namespace grpc_link;

// ---- Other jobs, other starts ----

void another_secret_is_found_out(void**) {
  GrpcWorkers workers(2, 4096);
  Transport& first = workers.join_with(0, [](GrpcOptions& o) { o.secret = "one"; });
  Transport& second = workers.join_with(1, [](GrpcOptions& o) { o.secret = "another"; });
  // Nothing is proven, so worker 1 keeps trying, and worker 0 to it.
  await([&] { return why(second, 0).find("its DIST_JOB_SECRET differs") != std::string::npos; });
  assert_false(second.lost(0) || first.lost(1) || second.rejected(0));
  first.close();
  second.close();
}

void another_cluster_is_found_out(void**) {
  GrpcWorkers workers(2, 4096);
  Transport& first = workers.join_with(0, [](GrpcOptions& o) { o.digest = "2 replicas each"; });
  Transport& second = workers.join_with(1, [](GrpcOptions& o) { o.digest = "3 replicas each"; });
  Transfer receive;
  std::byte got;
  second.receive(0, {}, &got, 1, receive);
  await([&] { return receive.over(); });
  assert_true(receive.end() == End::kLost);
  assert_says(why(second, 0), "rejected this worker: the cluster");
  assert_true(second.rejected(0));
  assert_false(first.rejected(1));
  first.close();
  second.close();
}

void a_second_start_is_refused(void**) {
  GrpcWorkers workers(3, 4096);
  const std::string elsewhere = free_addresses(1)[0];
  const auto aside = [&](GrpcOptions& o) { o.bind_address = elsewhere.c_str(); };
  Transport& first = workers.join(0);
  Transport& second = workers.join(1);
  Transport& third = workers.join(2);
  assert_speak(second, first, 1);
  Transport& again = workers.join_with(1, aside);
  await([&] { return again.lost(0) && again.lost(2); });
  assert_says(why(again, 0), "worker 1 has already joined and is running");
  assert_true(again.rejected(0) && again.rejected(2));
  assert_speak(second, third, 2);
  again.close();
  // The running worker 1 leaves. It then counts as lost because it has left, and not as rejected.
  second.close();
  await([&] { return first.lost(1) && third.lost(1); });
  assert_says(why(first, 1), "has left");
  assert_false(first.rejected(1) || third.rejected(1));
  assert_says(why(third, 1), "has left");
  workers.end(3);
  // It waits for the next network of worker 0, which may have a place for it.
  Transport& late = workers.join_with(1, aside);
  await([&] { return why(late, 0).find("is no longer part of this job") != std::string::npos; });
  assert_false(late.lost(0));
  assert_speak(third, first, 3);
  first.close();
  third.close();
  late.close();
}

// Acts as worker 0 until a worker has proven itself, and then ends without another message.
struct DyingLeader final : LinkUser, grpc::CallbackGenericService {
  explicit DyingLeader(const std::string& address) {
    grpc::ServerBuilder builder;
    Config config;
    config.bind_address = address;
    config.lease_ns = kDefaultLeaseNs;
    assert_string_equal(listener.listen(config, {config.bind_address}, builder).c_str(), "");
    builder.RegisterCallbackGenericService(this);
    server = builder.BuildAndStart();
    assert_true(server != nullptr && listener.start() &&
                random_bytes(incarnation.data(), incarnation.size()));
  }
  ~DyingLeader() override {
    listener.stop();
    server->Shutdown(std::chrono::system_clock::now());
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return links == 0; });
  }
  void await_proof() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return proven; });
  }
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    const std::scoped_lock lock(mutex);
    ++links;
    const auto link = std::make_shared<ServerLink>(*this, context);
    link->start();
    return link.get();
  }
  std::string took(const LinkRef& link, std::span<const grpc::Slice> message) noexcept override {
    const std::scoped_lock lock(mutex);
    if (link->stage == Link::Stage::kProof) {
      proven = true;
      changed.notify_all();
      return "it is killed";
    }
    std::string hello;
    for (const grpc::Slice& each : message)
      hello.append(reinterpret_cast<const char*>(each.begin()), each.size());
    Answer answer;
    std::strcpy(answer.version, DIST_GRPC_VERSION);
    answer.welcome = true;
    answer.receiver = incarnation;
    std::byte bytes[Answer::kBytes];
    answer.write(bytes);
    answer.proof = prove(Prover::kServer, "", reinterpret_cast<const std::byte*>(hello.data()), bytes);
    answer.write(bytes);
    link->stage = Link::Stage::kProof;
    link->put_raw(bytes, sizeof bytes);
    link->flush();
    return "";
  }
  bool more(Link&) noexcept override { return false; }
  void over(const LinkRef&, const std::string&, const std::string&) noexcept override {}
  void destroyed() noexcept override {
    const std::scoped_lock lock(mutex);
    --links;
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable changed;
  Identity incarnation{};
  bool proven = false;
  int links = 0;
  Listener listener{[](int) {}};
  std::unique_ptr<grpc::Server> server;
};

// The worker had not been accepted by worker 0's first process, so it may join the second.
void who_was_not_let_in_by_one_life_joins_the_next(void**) {
  GrpcWorkers workers(2, 4096);
  auto life = std::make_unique<DyingLeader>(workers.address(0));
  Transport& second = workers.join(1);
  life->await_proof();
  life = nullptr;
  Transport& first = workers.join(0);
  Transfer receive;
  std::byte got;
  first.receive(1, {.number = 1}, &got, 1, receive);
  Transfer send;
  second.send(0, {.number = 1}, &got, 1, send);
  await([&] { return receive.over() || second.lost(0); });
  assert_string_equal(why(second, 0).c_str(), "");
  assert_true(receive.end() == End::kDone);
  assert_speak(first, second, 2);
  first.close();
  second.close();
}

void an_address_in_use_is_an_error_at_once(void**) {
  GrpcWorkers workers(2, 4096);
  Transport& first = workers.join(0);
  Ref<GrpcNetwork> network;
  assert_true(GrpcNetwork::create({}, workers.options(0), &network).ok());
  Transport* transport = nullptr;
  assert_int_equal(network->join(0, &transport).code(), DIST_UNAVAILABLE);
  assert_says(std::string(last_message()), "cannot listen on " + workers.address(0));
  assert_null(transport);
  assert_int_equal(network->join(1, &transport).code(), DIST_INVALID_ARGUMENT);
  first.close();
}

// ---- Options ----

void options_are_checked(void**) {
  const auto code_of = [](const std::function<void(GrpcOptions&)>& change,
                          std::vector<const char*> addresses = {"127.0.0.1:1", "localhost:2"}) {
    GrpcOptions options;
    options.addresses = addresses;
    options.module_folder = MODULE_FOLDER;
    change(options);
    Ref<GrpcNetwork> network;
    return GrpcNetwork::create({}, options, &network).code();
  };
  const auto nothing = [](GrpcOptions&) {};
  assert_int_equal(code_of(nothing), DIST_OK);
  assert_int_equal(code_of(nothing, {"[::1]:1", "127.9.9.9:65535"}), DIST_OK);
  for (const char* const bad : {"", ":1", "host", "host:", "host:0", "host:65536", "host:-1", "host:1x",
                                "::1:5", "a/b:1", "unix:1:2", "a,b:1", "host:000001", "h\n:1"}) {
    if (code_of(nothing, {bad, "127.0.0.1:2"}) != DIST_INVALID_ARGUMENT) fail_msg("taken: %s", bad);
  }
  assert_int_equal(code_of(nothing, {"127.0.0.1:1", "127.0.0.1:1"}), DIST_INVALID_ARGUMENT);
  assert_int_equal(code_of(nothing, {}), DIST_INVALID_ARGUMENT);
  assert_int_equal(code_of([](GrpcOptions& o) { o.me = 2; }), DIST_INVALID_ARGUMENT);
  assert_int_equal(code_of([](GrpcOptions& o) { o.lease_ns = 99'999'999; }), DIST_INVALID_ARGUMENT);
  assert_int_equal(code_of([](GrpcOptions& o) { o.credit = 63; }), DIST_INVALID_ARGUMENT);
  assert_int_equal(code_of([](GrpcOptions& o) { o.secret = ""; }), DIST_INVALID_ARGUMENT);
  assert_int_equal(code_of([](GrpcOptions& o) { o.ca = "x"; }), DIST_INVALID_ARGUMENT);
  const auto pem = [](GrpcOptions& o) {
    o.ca = o.certificate = "-----BEGIN CERTIFICATE-----\n";
    o.key = "-----BEGIN EC PRIVATE KEY-----\n";
  };
  assert_int_equal(code_of(pem), DIST_OK);
  assert_int_equal(code_of([&](GrpcOptions& o) { pem(o), o.certificate = "junk"; }), DIST_INVALID_ARGUMENT);
  assert_says(std::string(last_message()), "the certificate has no \"-----BEGIN ... CERTIFICATE-----\"");
  assert_int_equal(code_of([&](GrpcOptions& o) { pem(o), o.key = o.ca; }), DIST_INVALID_ARGUMENT);
  assert_says(std::string(last_message()), "the key has no");
  // Plain text is refused for addresses other than loopback.
  for (const char* const far : {"10.0.0.1:1", "127.example.org:1", "localhost.example.org:1", "0.0.0.0:1"}) {
    assert_int_equal(code_of(nothing, {far}), DIST_FAILED_PRECONDITION);
    assert_int_equal(code_of([](GrpcOptions& o) { o.allow_plaintext = true; }, {far}),
                     DIST_FAILED_PRECONDITION);
    assert_int_equal(code_of([](GrpcOptions& o) { o.secret = "s"; }, {far}), DIST_FAILED_PRECONDITION);
    assert_int_equal(code_of(
                         [](GrpcOptions& o) {
                           o.allow_plaintext = true;
                           o.secret = "s";
                         },
                         {far}),
                     DIST_OK);
  }
  assert_int_equal(code_of([](GrpcOptions& o) { o.bind_address = "0.0.0.0:1"; }), DIST_FAILED_PRECONDITION);
}

void without_the_module_it_says_so(void**) {
  const char* const addresses[] = {"127.0.0.1:1"};
  GrpcOptions options;
  options.addresses = addresses;
  Ref<GrpcNetwork> network;
  const auto says = [&](const std::string& folder, const char* part) {
    options.module_folder = folder.c_str();
    assert_int_equal(GrpcNetwork::create({}, options, &network).code(), DIST_UNAVAILABLE);
    assert_says(std::string(last_message()), part);
  };
  says("/nowhere", "libdist-grpc.so was not found at /nowhere/libdist-grpc.so");
  says("/nowhere", "or set DIST_MODULE_FOLDER to the folder that contains it (PREFIX/lib/dist");
  // A file that is not a library, and a library that is not a module.
  for (const auto& [file, part] : {std::pair{"/dev/null", "cannot be loaded"},
                                   std::pair{OTHER_LIBRARY, "is not a libdist-grpc.so module"}}) {
    const std::string folder =
        std::string(std::filesystem::temp_directory_path()) + "/dist-modules-" + std::to_string(getpid());
    std::filesystem::create_directory(folder);
    std::filesystem::create_symlink(file, folder + "/libdist-grpc.so");
    says(folder, part);
    std::filesystem::remove_all(folder);
  }
}

// Beside libdist (here: this program), in `dist/` and directly.
void the_module_is_found_beside_libdist(void**) {
  char program[4096] = "";
  assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
  const std::string folder = std::string(program).substr(0, std::string(program).rfind('/'));
  const char* const addresses[] = {"127.0.0.1:1"};
  GrpcOptions options;
  options.addresses = addresses;
  Ref<GrpcNetwork> network;
  const auto create = [&] { return GrpcNetwork::create({}, options, &network).code(); };
  std::filesystem::create_directory(folder + "/dist");
  const std::string link = folder + "/dist/libdist-grpc.so";
  std::filesystem::remove(link);
  std::filesystem::create_symlink(MODULE_FOLDER "/libdist-grpc.so", link);
  assert_int_equal(create(), DIST_OK);
  std::filesystem::remove(link);
  const std::string beside = folder + "/libdist-grpc.so";
  // Removes a link that an aborted run has left behind, and nothing else.
  if (std::filesystem::is_symlink(beside)) std::filesystem::remove(beside);
  std::filesystem::create_symlink(OTHER_LIBRARY, beside);
  assert_int_equal(create(), DIST_UNAVAILABLE);
  assert_says(std::string(last_message()), beside + " is not a libdist-grpc.so module");
  std::filesystem::remove(beside);
}

// ---- TLS ----

struct Certificates {
  Certificates() {
    char name[] = "/tmp/dist-certificates-XXXXXX";
    if (mkdtemp(name) == nullptr) return;
    folder = name;
    there =
        run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out "
            "ca.pem "
            "-days 2 -subj /CN=ca");
    for (const char* const host : {"localhost", "other.example"}) {
      const std::string of = host;
      std::ofstream(std::string(folder).append("/").append(of).append(".ext"))
          << "subjectAltName=DNS:" << of << "\n";
      there = there &&
              run(std::string("openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ")
                      .append(of)
                      .append(".key -out ")
                      .append(of)
                      .append(".csr -subj /CN=")
                      .append(of)) &&
              run(std::string("openssl x509 -req -in ")
                      .append(of)
                      .append(".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out ")
                      .append(of)
                      .append(".pem -extfile ")
                      .append(of)
                      .append(".ext"));
    }
  }
  ~Certificates() {
    if (!folder.empty()) (void)!std::system(("rm -rf '" + folder + "'").c_str());
  }
  bool run(const std::string& command) const {
    return std::system(("cd '" + folder + "' && " + command + " >/dev/null 2>&1").c_str()) == 0;
  }
  std::string read(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(folder + "/" + name).rdbuf();
    return text.str();
  }
  std::string folder;
  bool there = false;
};

void certificates_are_for_the_host_of_the_address(void**) {
  const Certificates files;
  if (!files.there) skip_because("openssl is not installed");
  const std::string ca = files.read("ca.pem");
  const auto tls = [&](GrpcOptions& options, const std::string& certificate, const std::string& key) {
    options.ca = ca.c_str();
    options.certificate = certificate.c_str();
    options.key = key.c_str();
  };
  const std::string good[] = {files.read("localhost.pem"), files.read("localhost.key")};
  const std::string bad[] = {files.read("other.example.pem"), files.read("other.example.key")};
  // Each address is "localhost:port".
  const auto join = [&](GrpcWorkers& workers, int worker, const std::string(&pair)[2],
                        std::vector<std::string>& texts) -> Transport& {
    return workers.join_with(worker, [&](GrpcOptions& options) {
      static std::vector<const char*> addresses;
      addresses.clear();
      for (const std::string& each : texts) addresses.push_back(each.c_str());
      options.addresses = addresses;
      tls(options, pair[0], pair[1]);
    });
  };
  const auto names = [](const GrpcWorkers& workers) {
    std::vector<std::string> texts;
    for (int w = 0; w < 2; ++w) {
      texts.push_back("localhost" + workers.address(w).substr(workers.address(w).rfind(':')));
    }
    return texts;
  };
  {
    GrpcWorkers workers(2, 4096);
    auto texts = names(workers);
    Transport& first = join(workers, 0, good, texts);
    Transport& second = join(workers, 1, good, texts);
    assert_speak(first, second, 1);
    assert_speak(second, first, 2);
    // A peer without a certificate is rejected.
    Stranger stranger(workers, 0);
    stranger.say(good_hello(workers, 2));
    assert_string_equal(stranger.hear().c_str(), "");
    first.close();
    second.close();
  }
  {
    GrpcWorkers workers(2, 4096);
    auto texts = names(workers);
    Transport& first = join(workers, 0, good, texts);
    Transport& second = join(workers, 1, bad, texts);
    await([&] { return second.lost(0); });
    assert_says(why(second, 0), "the certificate of worker 1 is not for localhost");
    assert_false(first.lost(1));
    first.close();
    second.close();
  }
  {
    GrpcWorkers workers(2, 4096);
    auto texts = names(workers);
    Transport& first = join(workers, 0, bad, texts);
    Transport& second = join(workers, 1, good, texts);
    await([&] { return !why(second, 0).empty(); });
    assert_says(why(second, 0), "cannot be reached yet");
    assert_false(second.lost(0));
    first.close();
    second.close();
  }
}

// At first, worker 0's address may present the certificate of the generation that ends.
void who_forms_waits_for_the_other_certificate(void**) {
  const Certificates files;
  if (!files.there) skip_because("openssl is not installed");
  const GrpcWorkers workers(2, 4096);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string& text = workers.address(0);
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(text.substr(text.rfind(':') + 1))));
  const int listens = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(listens, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  assert_int_equal(listen(listens, 8), 0);
  std::atomic<int> refused{0};
  std::thread worker_0([&] {
    constexpr unsigned char kUnknownAuthority[] = {0x15, 3, 3, 0, 2, 2, 48};  // an alert of TLS
    for (int fd; (fd = accept(listens, nullptr, nullptr)) >= 0; ++refused) {
      (void)!::send(fd, kAcceptedResponse, sizeof kAcceptedResponse - 1, MSG_NOSIGNAL);
      (void)!::send(fd, kUnknownAuthority, sizeof kUnknownAuthority, MSG_NOSIGNAL);
      ::close(fd);
    }
  });
  GrpcOptions options = workers.options(1);
  const std::string pem[] = {files.read("ca.pem"), files.read("localhost.pem"), files.read("localhost.key")};
  options.ca = pem[0].c_str();
  options.certificate = pem[1].c_str();
  options.key = pem[2].c_str();
  options.forms = true;
  options.came_from.generation = 0;
  options.lease_ns = int64_t{3600} * 1'000'000'000;
  Ref<GrpcNetwork> network;
  assert_true(GrpcNetwork::create({}, options, &network).ok());
  Transport* transport = nullptr;
  assert_true(network->join(1, &transport).ok());
  std::atomic<bool> cancelled{false};
  std::atomic<bool> over{false};
  dist_status formed = DIST_OK;
  std::thread forming([&] {
    Formed out;
    Forming wanted;
    wanted.cancelled = &cancelled;
    formed = network->form(wanted, &out).code();
    over = true;
  });
  constexpr int kMany = 6;
  await([&] { return refused >= kMany || over; });
  assert_false(over);
  cancelled = true;
  forming.join();
  assert_int_equal(formed, DIST_CANCELLED);
  network = Ref<GrpcNetwork>();
  shutdown(listens, SHUT_RDWR);
  worker_0.join();
  ::close(listens);
}

// ---- End of a link ----

struct LinkOwner final : LinkUser {
  std::string took(const LinkRef&, std::span<const grpc::Slice>) noexcept override { return ""; }
  bool more(Link&) noexcept override { return false; }
  void over(const LinkRef&, const std::string&, const std::string&) noexcept override {}
  void destroyed() noexcept override { told = true; }
  bool told = false;
};

void an_owner_is_told_after_all_of_its_link_is_gone(void**) {
  LinkOwner owner;
  int too_late = -1;
  {
    const auto link = std::make_shared<ClientLink>(owner, nullptr);
    // A carrier needs its owner's memory until it has been destroyed.
    CarrierRef carrier(static_cast<Carrier*>(nullptr), [&](Carrier*) { too_late = owner.told ? 1 : 0; });
    assert_true(link->change_carrier(&carrier));
  }
  assert_true(owner.told);
  assert_int_equal(too_late, 0);
}

}  // namespace
}  // namespace dist

// Debian's c-ares keeps some bytes of each name that gRPC asks it for.
// NOLINTBEGIN(bugprone-reserved-identifier): LeakSanitizer's name
extern "C" [[gnu::visibility("default")]] const char* __lsan_default_suppressions();
extern "C" [[gnu::visibility("default")]] const char* __lsan_default_suppressions() {
  return "leak:libcares";
}
// NOLINTEND(bugprone-reserved-identifier)

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(an_owner_is_told_after_all_of_its_link_is_gone),
      cmocka_unit_test(another_secret_is_found_out),
      cmocka_unit_test(another_cluster_is_found_out),
      cmocka_unit_test(a_second_start_is_refused),
      cmocka_unit_test(who_was_not_let_in_by_one_life_joins_the_next),
      cmocka_unit_test(an_address_in_use_is_an_error_at_once),
      cmocka_unit_test(options_are_checked),
      cmocka_unit_test(without_the_module_it_says_so),
      cmocka_unit_test(the_module_is_found_beside_libdist),
      cmocka_unit_test(certificates_are_for_the_host_of_the_address),
      cmocka_unit_test(who_forms_waits_for_the_other_certificate),
  };
  return cmocka_run_group_tests_name("grpc_links", tests, nullptr, nullptr);
}
