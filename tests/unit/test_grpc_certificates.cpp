// SPDX-License-Identifier: Apache-2.0
// core/net/grpc: failures of TLS and their causes, as both sides report them.
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/net/grpc/probe.hpp"
#include "core/net/grpc_calls.hpp"
#include "tests/unit/grpc_authority.hpp"
#include "tests/unit/grpc_support.hpp"
#include "tests/unit/plain_error.hpp"

namespace dist {
namespace {

using namespace grpc_link;

// ---- Names ----

void only_names_for_the_host_count(void**) {
  const Authority authority("authority");
  const struct {
    const char* names;
    const char* host;
    bool fits;
  } table[] = {
      {"DNS:a.example", "a.example", true},
      {"DNS:a.example", "A.Example", true},
      {"DNS:a.example", "a.example.", true},
      {"DNS:a.example", "b.example", false},
      {"DNS:a.example", "x.a.example", false},
      {"DNS:a.example", "example", false},
      {"DNS:other.example,DNS:a.example", "a.example", true},
      // A wildcard must be the whole first label, and matches one label.
      {"DNS:*.svc.local", "a.svc.local", true},
      {"DNS:*.svc.local", "A.SVC.local", true},
      {"DNS:*.svc.local", "a.b.svc.local", false},
      {"DNS:*.svc.local", "svc.local", false},
      {"DNS:*.svc.local", ".svc.local", false},
      {"DNS:a*.svc.local", "ab.svc.local", false},
      {"DNS:*a.svc.local", "ba.svc.local", false},
      {"DNS:a.*.local", "a.svc.local", false},
      {"DNS:*.*.local", "a.svc.local", false},
      {"DNS:*.local", "a.local", false},
      {"DNS:*", "a", false},
      {"DNS:*", "a.local", false},
      {"DNS:*.0.0.1", "127.0.0.1", false},
      // An address is an IP name.
      {"IP:127.0.0.2", "127.0.0.2", true},
      {"IP:127.0.0.2", "127.0.0.1", false},
      {"DNS:127.0.0.2", "127.0.0.2", false},
      {"IP:::1", "::1", true},
      {"IP:::1", "0:0:0:0:0:0:0:1", true},
      {"IP:127.0.0.1", "localhost", false},
      // Other kinds of names.
      {"URI:127.0.0.2", "127.0.0.2", false},
      {"URI:a.example", "a.example", false},
      {"email:a.example@a.example", "a.example", false},
      {"", "a.example", false},
  };
  for (const auto& each : table) {
    const Issued issued = authority.issue({.names = each.names, .subject = each.host});
    const std::string why = why_not_for(std::string_view(issued.certificate), each.host);
    if (why.empty() != each.fits) fail_msg("'%s' for %s: %s", each.names, each.host, why.c_str());
  }
}

void a_message_lists_the_names(void**) {
  const Authority authority("authority");
  const auto why = [&](const char* names) {
    return why_not_for(std::string_view(authority.issue({.names = names}).certificate), "host");
  };
  assert_string_equal(why("DNS:a.example,IP:10.0.0.7,IP:fe80::1").c_str(),
                      "is not for host; it is for a.example, 10.0.0.7, fe80:0:0:0:0:0:0:1");
  assert_string_equal(why("DNS:a,DNS:b,DNS:c,DNS:d,DNS:e,DNS:f").c_str(),
                      "is not for host; it is for a, b, c, d and 2 more");
  assert_string_equal(why("URI:host").c_str(),
                      "is not for host; it has no DNS or IP name, and no other kind of name counts");
  assert_string_equal(why_not_for("-----BEGIN CERTIFICATE-----", "host").c_str(), "cannot be read");
}

void the_first_bytes_tell_the_protocol(void**) {
  const auto tell = [](const std::string& bytes) {
    return first_bytes_tell(std::as_bytes(std::span(bytes)));
  };
  using std::string_literals::operator""s;
  assert_true(tell("\x16\x03\x01\x02\x00"s) == Speaks::kTls);
  assert_true(tell("\x15\x03\x03\x00\x02\x02\x30"s) == Speaks::kTls);
  assert_true(tell("PRI * HTTP/2.0\r\n\r\n") == Speaks::kPlainText);
  assert_true(tell("\0\0\x12\x04\0\0\0\0\0"s) == Speaks::kPlainText);
  assert_true(tell("") == Speaks::kOther);
  assert_true(tell("\x16") == Speaks::kOther);
  assert_true(tell("\0\0\x12\x04\0\0\0\0"s) == Speaks::kOther);
  assert_true(tell("HTTP/1.1 400 Bad Request") == Speaks::kOther);
  assert_true(tell("SSH-2.0-OpenSSH_9.2") == Speaks::kOther);
}

// ---- The own files ----

struct Files {
  std::string ca, certificate, key;
};

template <class Options>
void set(Options& options, const Files& files) {
  if (files.ca.empty()) return;
  options.ca = files.ca.c_str();
  options.certificate = files.certificate.c_str();
  options.key = files.key.c_str();
}

void unusable_files_are_errors_at_once(void**) {
  const Authority authority("authority");
  const Issued good = authority.issue();
  const Issued other = authority.issue();
  const Issued weak = authority.issue({.rsa_bits = 1024});
  const std::string damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  const struct {
    Files files;
    const char* text;
    const char* named;  // if the files are known
  } table[] = {
      {{damaged, good.certificate, good.key},
       "(DIST_TLS_CA), or one of several, cannot be read",
       "(DIST_TLS_CA: /run/ca.pem), or one of several, cannot be read"},
      {{authority.pem() + damaged, good.certificate, good.key},
       "(DIST_TLS_CA), or one of several, cannot be read",
       "(DIST_TLS_CA: /run/ca.pem), or one of several, cannot be read"},
      {{authority.pem(), damaged, good.key},
       "(DIST_TLS_CERTIFICATE), or one of its chain, cannot be read",
       "(DIST_TLS_CERTIFICATE: /run/own.pem), or one of its chain, cannot be read"},
      {{authority.pem(), good.certificate + damaged, good.key},
       "(DIST_TLS_CERTIFICATE), or one of its chain",
       "(DIST_TLS_CERTIFICATE: /run/own.pem), or one of its chain"},
      {{authority.pem(), weak.certificate, weak.key},
       "(DIST_TLS_CERTIFICATE) or its key: ee key too small",
       "(DIST_TLS_CERTIFICATE: /run/own.pem) or its key: ee key too small"},
      {{authority.pem(), good.certificate, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"},
       "(DIST_TLS_KEY) cannot be read",
       "(DIST_TLS_KEY: /run/own.key) cannot be read"},
      {{authority.pem(), good.certificate, Authority::encrypt(good.key)},
       "(DIST_TLS_KEY) is encrypted",
       "(DIST_TLS_KEY: /run/own.key) is encrypted"},
      {{authority.pem(), good.certificate, other.key},
       "(DIST_TLS_KEY) does not belong to the certificate (DIST_TLS_CERTIFICATE), which",
       "(DIST_TLS_KEY: /run/own.key) does not belong to the certificate (DIST_TLS_CERTIFICATE: "
       "/run/own.pem), "
       "which"},
  };
  for (const auto& each : table) {
    const GrpcWorkers workers(2, 4096);
    for (int worker = 0; worker < 2; ++worker) {
      GrpcOptions options = workers.options(worker);
      set(options, each.files);
      Ref<GrpcNetwork> network;
      Transport* transport = nullptr;
      assert_true(GrpcNetwork::create({}, options, &network).ok());
      assert_int_equal(network->join(worker, &transport).code(), DIST_INVALID_ARGUMENT);
      assert_says(std::string(last_message()), each.text);
    }
    // With the files, as they are known if the texts come from the variables.
    GrpcOptions of_files = workers.options(0);
    set(of_files, each.files);
    of_files.files = {"/run/ca.pem", "/run/own.pem", "/run/own.key"};
    Ref<GrpcNetwork> network;
    Transport* transport = nullptr;
    assert_true(GrpcNetwork::create({}, of_files, &network).ok());
    assert_int_equal(network->join(0, &transport).code(), DIST_INVALID_ARGUMENT);
    assert_says(std::string(last_message()), each.named);
    GrpcCallOptions options;
    options.module_folder = MODULE_FOLDER;
    set(options, each.files);
    const Ref<Memory> memory = Ref<Memory>::adopt(Memory::create({}));
    Ref<GrpcCalls> calls;
    assert_int_equal(GrpcCalls::create(*memory, options, &calls).code(), DIST_INVALID_ARGUMENT);
    assert_says(std::string(last_message()), each.text);
  }
}

// ---- Two workers ----

// Waits until a text contains a part. The limit only guards against a hang.
template <class Text>
void await_says(const Text& text, const char* part) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::string now;
  while ((now = text()).find(part) == std::string::npos) {
    if (std::chrono::steady_clock::now() >= until) fail_msg("'%s' is not in: %s", part, now.c_str());
    std::this_thread::yield();
  }
}

struct Case {
  Files files[2];
  const char* at_0;  // worker 0's text on worker 1
  const char* at_1;
};

void both_sides_name_the_cause(void**) {
  const Authority trusted("trusted");
  const Authority unknown("unknown");
  const Authority namesake("trusted");
  const auto files = [](const Authority& authority, const Issued& issued, const std::string& more = "") {
    return Files{authority.pem() + more, issued.certificate, issued.key};
  };
  const Files good = files(trusted, trusted.issue());
  const Files expired = files(trusted, trusted.issue({.from_days = -3, .to_days = -1}));
  const Files early = files(trusted, trusted.issue({.from_days = 1}));
  const Files for_servers = files(trusted, trusted.issue({.usage = "serverAuth"}));
  const Files for_clients = files(trusted, trusted.issue({.usage = "clientAuth"}));
  const Files wrong = files(trusted, trusted.issue({.names = "DNS:elsewhere.example"}));
  const Files uri = files(trusted, trusted.issue({.names = "URI:127.0.0.1"}));
  const Files common = files(trusted, trusted.issue({.names = "", .subject = "127.0.0.1"}));
  const Files strange = files(unknown, unknown.issue());
  // It trusts the peer's authority, but not the other way round.
  const Files one_sided = files(trusted, unknown.issue(), unknown.pem());
  const Files one_sided_namesake = files(trusted, namesake.issue(), namesake.pem());
  const Files none;
  constexpr char kPurpose[] =
      "may not be used for this purpose. It needs the extended key usages serverAuth and "
      "clientAuth, or none. Replace DIST_TLS_CERTIFICATE on worker";
  constexpr char kUnknownTheirs[] = "its certificate was issued by an unknown authority, CN = unknown";
  // Not "this process", because worker 0's reports reach all workers.
  constexpr char kUnknownOurs0[] =
      "rejects the certificate of worker 0, which was issued by an unknown authority, CN = unknown";
  constexpr char kUnknownOurs1[] =
      "rejects the certificate of worker 1, which was issued by an unknown authority, CN = unknown";
  const Case cases[] = {
      {{good, expired},
       "its certificate expired on 20",
       "it rejects the certificate of worker 1, which expired on 20"},
      {{expired, good},
       "it rejects the certificate of worker 0, which expired on 20",
       "its certificate expired on 20"},
      {{good, early},
       "its certificate is not yet valid: it becomes valid on 20",
       "it rejects the certificate of worker 1, which is not yet valid"},
      {{early, good},
       "it rejects the certificate of worker 0, which is not yet valid",
       "its certificate is not yet valid"},
      // Worker 0 sends worker 1 the reason, so it names the worker.
      {{good, wrong},
       "its certificate is not for 127.0.0.1; it is for elsewhere.example. Set DIST_TLS_CERTIFICATE on "
       "worker 1",
       "the certificate of worker 1 is not for 127.0.0.1; it is for elsewhere.example. Set "
       "DIST_TLS_CERTIFICATE "
       "on worker 1 to one for 127.0.0.1"},
      {{wrong, good},
       "the certificate of worker 0 is not for 127.0.0.1; it is for elsewhere.example",
       "its certificate is not for 127.0.0.1; it is for elsewhere.example"},
      {{good, uri},
       "its certificate is not for 127.0.0.1; it has no",
       "the certificate of worker 1 is not for 127.0.0.1; it has no"},
      {{uri, good}, "is not for 127.0.0.1; it has no", "its certificate is not for 127.0.0.1; it has no"},
      {{good, common}, "is not for 127.0.0.1; it has no", "worker 1 is not for 127.0.0.1; it has no"},
      {{common, good}, "is not for 127.0.0.1; it has no", "its certificate is not for 127.0.0.1; it has no"},
      {{good, for_servers},
       "its certificate may not be used for this purpose",
       "it rejects the certificate of worker 1, which may not be used for this purpose"},
      // TLS accepts these in the direction of the first connection, but they would fail in the other one.
      {{good, for_clients}, kPurpose, "the certificate of worker 1 may not be used for this purpose"},
      {{for_clients, good}, kPurpose, "its certificate may not be used for this purpose"},
      {{for_servers, good}, kPurpose, "its certificate may not be used for this purpose"},
      {{good, strange}, kUnknownTheirs, "its certificate was issued by an unknown authority, CN = trusted"},
      {{good, strange}, "rejects the certificate of worker 0", kUnknownOurs1},
      {{good, one_sided}, kUnknownTheirs, kUnknownOurs1},
      {{one_sided, good}, kUnknownOurs0, kUnknownTheirs},
      {{good, one_sided_namesake},
       "was issued by an unknown authority: it has the same name as the trusted one (DIST_TLS_CA), CN = "
       "trusted, "
       "but another key; the SHA-256 fingerprint of the trusted one begins with ",
       "CN = trusted, whose SHA-256 fingerprint begins with "},
      {{one_sided_namesake, good},
       "CN = trusted, whose SHA-256 fingerprint begins with ",
       "it has the same name as the trusted one (DIST_TLS_CA), CN = trusted, but another key"},
      {{none, good},
       "it uses TLS, but worker 0 uses plain text",
       "it uses plain text, but worker 1 uses TLS"},
      {{good, none},
       "it uses plain text, but worker 0 uses TLS",
       "it uses TLS, but worker 1 uses plain text"},
  };
  for (const Case& each : cases) {
    GrpcWorkers workers(2, 4096);
    const auto join = [&](int worker) -> Transport& {
      return workers.join_with(worker, [&](GrpcOptions& options) {
        set(options, each.files[worker]);
        // A worker that ends waits this long for one that it has not reached.
        options.lease_ns = 200'000'000;
      });
    };
    Transport& first = join(0);
    Transport& second = join(1);
    await_says([&] { return why(first, 1); }, each.at_0);
    await_says([&] { return why(second, 0); }, each.at_1);
    assert_false(first.lost(1));
    first.close();
    second.close();
  }
}

// A missing worker may start with the right files later.
void the_cause_disappears_with_the_failure(void**) {
  const Authority trusted("trusted");
  const Issued good = trusted.issue();
  const Issued expired = trusted.issue({.from_days = -3, .to_days = -1});
  GrpcWorkers workers(2, 4096);
  const auto join = [&](int worker, const Issued& issued) -> Transport& {
    return workers.join_with(worker, [&](GrpcOptions& options) {
      options.ca = trusted.pem().c_str();
      options.certificate = issued.certificate.c_str();
      options.key = issued.key.c_str();
      options.lease_ns = 2'000'000'000;
    });
  };
  Transport& first = join(0, good);
  Transport& early = join(1, expired);
  await([&] { return why(first, 1).find("expired") != std::string::npos; });
  early.close();
  workers.end(1);
  Transport& second = join(1, good);
  assert_speak(second, first, 1);
  assert_speak(first, second, 2);
  assert_string_equal(why(first, 1).c_str(), "");
  first.close();
  second.close();
}

// ---- Calls ----

struct Call final : OutgoingCall {
  void answered(dist_status with, const char* why, Ref<CallMessage>) noexcept override {
    status = with;
    text = why;
    over = true;
  }
  dist_status status = -1;
  std::string text;
  std::atomic<bool> over{false};
};

struct Handler final : CallHandler {
  void called(Ref<IncomingCall> call) noexcept override { call->answer(DIST_OK, "", {}); }
  void given_up(IncomingCall&) noexcept override {}
};

class Empty final : public CallParts {
 public:
  explicit Empty(Memory& memory) noexcept : CallParts(memory) {}
  std::span<const std::span<const std::byte>> parts() const noexcept override { return {}; }
  std::size_t bytes() const noexcept override { return 0; }
};

void a_client_names_the_cause(void**) {
  const Authority trusted("trusted");
  const Authority unknown("unknown");
  const auto files = [&](const Issued& issued) {
    return Files{trusted.pem(), issued.certificate, issued.key};
  };
  const Files good = files(trusted.issue());
  const Files none;
  const struct {
    Files server, client;
    const char* text;
  } table[] = {
      {files(trusted.issue({.from_days = -3, .to_days = -1})), good, "its certificate expired on 20"},
      {files(trusted.issue({.names = "DNS:elsewhere.example"})), good, "is for elsewhere.example"},
      {files(trusted.issue({.names = "URI:127.0.0.1"})), good, "it has no DNS or IP name"},
      {{unknown.pem(), unknown.issue().certificate, ""}, good, "unknown authority, CN = unknown"},
      {none, good, "it uses plain text, but this process uses TLS"},
      {good, none, "it uses TLS, but this process uses plain text"},
      {good, files(trusted.issue({.from_days = -3, .to_days = -1})), "process, which expired on 20"},
      {good, files(trusted.issue({.from_days = 1})), "process, which is not yet valid"},
  };
  const Ref<Memory> memory = Ref<Memory>::adopt(Memory::create({}));
  for (const auto& each : table) {
    Files of_server = each.server;
    const Issued strange = unknown.issue();
    if (!of_server.ca.empty() && of_server.key.empty()) {
      of_server.certificate = strange.certificate;
      of_server.key = strange.key;
    }
    Handler handler;
    GrpcCallOptions options;
    options.module_folder = MODULE_FOLDER;
    options.handler = &handler;
    options.bind_address = "127.0.0.1:0";
    set(options, of_server);
    Ref<GrpcCalls> server;
    assert_true(GrpcCalls::create(*memory, options, &server).ok());
    GrpcCallOptions of_client;
    of_client.module_folder = MODULE_FOLDER;
    set(of_client, each.client);
    Ref<GrpcCalls> client;
    assert_true(GrpcCalls::create(*memory, of_client, &client).ok());
    const std::string address = "127.0.0.1:" + std::to_string(server->port());
    CallChannel* channel = nullptr;
    assert_true(client->open("test", address.c_str(), &channel).ok());
    Call call;
    channel->begin(call, Ref<CallParts>::adopt(make_counted<Empty>(*memory).take()), 1'000'000'000'000);
    // It is tried until its deadline.
    char text[1024] = "";
    await([&] {
      channel->why_not(text, sizeof text);
      return std::string(text).find(each.text) != std::string::npos;
    });
    assert_false(call.over);
    client->close(channel);
  }
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(only_names_for_the_host_count),
      cmocka_unit_test(a_message_lists_the_names),
      cmocka_unit_test(the_first_bytes_tell_the_protocol),
      cmocka_unit_test(unusable_files_are_errors_at_once),
      cmocka_unit_test(both_sides_name_the_cause),
      cmocka_unit_test(the_cause_disappears_with_the_failure),
      cmocka_unit_test(a_client_names_the_cause),
  };
  return cmocka_run_group_tests_name("grpc_certificates", tests, nullptr, nullptr);
}
