// SPDX-License-Identifier: Apache-2.0
// On which addresses a worker listens, with gRPC and with Gloo, and the reasons that are reported if it
// cannot.
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/grpc_support.hpp"
#include "tests/unit/plain_error.hpp"

namespace dist {
namespace {

std::string free_port() {
  const std::string address = free_addresses(1)[0];
  return address.substr(address.rfind(':') + 1);
}

bool listens(const std::string& host, const std::string& port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(port)));
  assert_int_equal(inet_pton(AF_INET, host.c_str(), &to.sin_addr), 1);
  const bool connected = connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  ::close(fd);
  return connected;
}

struct Listener {
  explicit Listener(const std::vector<std::string>& all, const char* bind_address = nullptr) {
    for (const std::string& each : all) addresses.push_back(each.c_str());
    options.addresses = addresses;
    options.bind_address = bind_address;
    options.secret = "known to all";
    options.allow_plaintext = true;
    options.lease_ns = 100'000'000;
    use_module(options);
    assert_true(GrpcNetwork::create({}, options, &network).ok());
  }
  dist_status join() {
    Transport* transport = nullptr;
    return network->join(0, &transport).code();
  }
  std::vector<const char*> addresses;
  GrpcOptions options;
  Ref<GrpcNetwork> network;
};

void a_worker_listens_on_all_interfaces(void**) {
  // The address of a gateway, and a name that does not resolve.
  for (const char* const host : {"192.0.2.1:", "not..a.name:"}) {
    const std::string port = free_port();
    Listener worker({host + port, "192.0.2.2:1"});
    assert_int_equal(worker.join(), DIST_OK);
    assert_true(listens("127.0.0.1", port) && listens("127.0.0.2", port));
  }
}

void a_worker_on_loopback_listens_there_only(void**) {
  for (const char* const host : {"127.0.0.1:", "localhost:"}) {
    const std::string port = free_port();
    Listener worker({host + port, "127.0.0.1:1"});
    assert_int_equal(worker.join(), DIST_OK);
    assert_true(listens("127.0.0.1", port));
    assert_false(listens("127.0.0.2", port));
  }
}

void a_bind_address_is_used(void**) {
  const std::string port = free_port();
  const std::string here = "127.0.0.2:" + port;
  Listener worker({"192.0.2.1:" + port, "192.0.2.2:1"}, here.c_str());
  assert_int_equal(worker.join(), DIST_OK);
  assert_true(listens("127.0.0.2", port));
  assert_false(listens("127.0.0.1", port));
}

void the_reason_why_one_cannot_listen_is_reported(void**) {
  const std::string port = free_port();
  const auto refused = [&](const std::string& bind_address, const char* reason) {
    Listener worker({"192.0.2.1:" + port, "192.0.2.2:1"}, bind_address.c_str());
    assert_int_equal(worker.join(), DIST_UNAVAILABLE);
    assert_says(std::string(last_message()), "cannot listen on " + bind_address + ": " + reason);
  };
  refused("192.0.2.9:" + port, "the address belongs to no interface of this machine");
  refused("not..a.name:" + port, "the host name not..a.name does not resolve");
  Listener first({"192.0.2.1:" + port, "192.0.2.2:1"});
  assert_int_equal(first.join(), DIST_OK);
  refused("127.0.0.1:" + port, "the port is in use");
  refused("[::]:" + port, "the port is in use");
}

// Two workers that listen on addresses other than the ones by which they are known.
void data_move_between_workers_that_listen_elsewhere(void**) {
  const std::string ports[] = {free_port(), free_port()};
  const std::string names[] = {"localhost:" + ports[0], "localhost:" + ports[1]};
  for (const char* const host : {"0.0.0.0:", "[::]:", "127.0.0.1:", "localhost:"}) {
    const char* const addresses[] = {names[0].c_str(), names[1].c_str()};
    Ref<GrpcNetwork> networks[2];
    Transport* transports[2] = {};
    for (std::size_t w = 0; w < 2; ++w) {
      const std::string here = host + ports[w];
      GrpcOptions options;
      options.addresses = addresses;
      options.me = static_cast<int>(w);
      options.bind_address = here.c_str();
      options.secret = "known to all";
      options.allow_plaintext = true;
      use_module(options);
      assert_true(GrpcNetwork::create({}, options, &networks[w]).ok());
      if (!networks[w]->join(static_cast<int>(w), &transports[w]).ok()) fail_msg("%s", last_message());
    }
    assert_speak(*transports[1], *transports[0], 1);
    assert_speak(*transports[0], *transports[1], 2);
    for (Transport* const each : transports) each->close();
    std::thread other([&] { networks[0] = {}; });
    networks[1] = {};
    other.join();
  }
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_worker_listens_on_all_interfaces),
      cmocka_unit_test(a_worker_on_loopback_listens_there_only),
      cmocka_unit_test(a_bind_address_is_used),
      cmocka_unit_test(the_reason_why_one_cannot_listen_is_reported),
      cmocka_unit_test(data_move_between_workers_that_listen_elsewhere),
  };
  return cmocka_run_group_tests_name("grpc_listening", tests, nullptr, nullptr);
}
