// SPDX-License-Identifier: Apache-2.0
// The ports of tasks of dist-launch, and the variables by which the tasks find each other. The last argument
// is meeting_task.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "tests/tools/launch_support.hpp"

namespace {

// Returns the value of a variable in the output of a single task.
std::string value_of(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(name + "=");
  if (at == std::string::npos) fail_msg("no %s in '%s'", name.c_str(), text.c_str());
  const std::size_t begin = at + name.size() + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

// Whether a program could listen on this port; with SO_REUSEADDR if `shares`.
bool can_listen(const std::string& address, bool shares) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
  const int on = shares ? 1 : 0;
  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
  const bool can = bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 && listen(fd, 1) == 0;
  close(fd);
  return can;
}

const Words kShow = {"env", "DIST_RENDEZVOUS", "env", "DIST_RANK", "env", "DIST_SIZE", "env", "TF_CONFIG"};
const Given kOuter = {
    .environment = {{"DIST_RENDEZVOUS", "outer:1"}, {"DIST_RANK", "8"}, {"DIST_SIZE", "9"}}};

void tasks_know_their_rank_and_one_address(void**) {
  for (const char* chief : {"--grace=10", "--chief"}) {
    Launch launch(task({"-n2", chief}, Words{"only", "worker 1"} + kShow + Words{"end"} +
                                           Words{"only", "chief 0"} + kShow + Words{"end"}),
                  kOuter);
    launch.ends(0);
    const bool is_chief = std::strcmp(chief, "--chief") == 0;
    assert_text(value_of(launch.all_out, "DIST_RANK"), is_chief ? "0" : "1");
    assert_text(value_of(launch.all_out, "DIST_SIZE"), "2");
    const std::string address = value_of(launch.all_out, "DIST_RENDEZVOUS");
    assert_words(launch.all_out,
                 std::string(is_chief ? R"({"chief":[")" : R"({"worker":[")") + address + "\"");
  }
  Launch hosts(task({"--hosts=a:1,b:2", "--index=1"}, Words{"only", "worker 2"} + kShow + Words{"end"}),
               {.environment = {{"DIST_JOB_SECRET", "s"}}});
  hosts.ends(0);
  assert_text(value_of(hosts.all_out, "DIST_RENDEZVOUS"), "a:29500");
  assert_text(value_of(hosts.all_out, "DIST_RANK"), "2");
  assert_text(value_of(hosts.all_out, "DIST_SIZE"), "3");
}

void parameter_servers_do_not_meet(void**) {
  Launch launch(task({"-n1", "--ps=1"}, Words{"only", "chief 0"} + kShow + Words{"end"}), kOuter);
  launch.ends(0);
  for (const char* name : {"DIST_RENDEZVOUS", "DIST_RANK", "DIST_SIZE"})
    assert_words(launch.all_out, std::string(name) + " is not set");
}

// The tasks of two jobs have different ports, which no other program gets, whether a task listens on them or
// not.
void ports_are_held(void**) {
  std::string addresses[2];
  std::unique_ptr<Launch> jobs[2];
  for (int k = 0; k < 2; ++k) {
    jobs[k] = std::make_unique<Launch>(task({"-n1"}, {"env", "DIST_RENDEZVOUS", "tell", "here", "await"}));
    jobs[k]->hear(1);
    addresses[k] = value_of(line_of(jobs[k]->out), "DIST_RENDEZVOUS");
    assert_false(can_listen(addresses[k], false));
    assert_true(can_listen(addresses[k], true));
  }
  assert_true(addresses[0] != addresses[1]);
  for (int k = 0; k < 2; ++k) {
    jobs[k]->open_gate();
    jobs[k]->ends(0);
    assert_true(can_listen(addresses[k], false));
  }
}

void jobs_at_the_same_time_meet(void**) {
  constexpr int kJobs = 3;
  std::unique_ptr<Launch> jobs[kJobs];
  for (auto& each : jobs) each = std::make_unique<Launch>(Words{"-n3", resolver_path});
  for (auto& each : jobs) {
    each->ends(0);
    assert_text(each->all_err, "");
    assert_lines(sorted(lines_of(each->all_out)),
                 {"[worker 0] rank 0 of 3", "[worker 1] rank 1 of 3", "[worker 2] rank 2 of 3"});
  }
}

}  // namespace

int main(int argc, char** argv) {
  take_paths(argc, argv);
  const CMUnitTest tests[] = {
      cmocka_unit_test(tasks_know_their_rank_and_one_address),
      cmocka_unit_test(parameter_servers_do_not_meet),
      cmocka_unit_test(ports_are_held),
      cmocka_unit_test(jobs_at_the_same_time_meet),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
