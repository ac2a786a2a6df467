// SPDX-License-Identifier: Apache-2.0
// Signals that dist-launch receives, and which of them its tasks receive.
#include "tests/tools/launch_support.hpp"

namespace {

void ending_signals_go_on(void**) {
  const struct {
    int signal;
    const char* name;
    const char* more;
  } rows[] = {{SIGTERM, "TERM", ""}, {SIGHUP, "HUP", ""}, {SIGINT, "INT", "; a second SIGINT kills them"}};
  for (const auto& row : rows) {
    Launch launch(task({"-n2"}, {"trap", row.name, "exit", "tell", "up", "wait"}));
    launch.hear(2);
    launch.send(row.signal);
    launch.ends(128 + row.signal);
    assert_text(launch.all_err,
                std::string("dist-launch: SIG") + row.name + " was forwarded to all tasks" + row.more + "\n");
  }
}

// Each task receives the signal once and may take time to end. Its exit status does not matter, because the
// job did not end by itself.
void tasks_may_take_their_time(void**) {
  Launch launch(task({"-n2"}, {"trap", "TERM", "tell", "tell", "up", "await", "say", "saved"}));
  launch.hear(2);
  launch.send(SIGTERM);
  assert_lines(launch.hear(2), {"worker 0 TERM", "worker 1 TERM"});
  launch.open_gate(2);
  launch.ends(128 + SIGTERM);
  assert_lines(sorted(lines_of(launch.all_out)), {"[worker 0] saved", "[worker 1] saved"});
}

void a_failure_before_the_signal_counts(void**) {
  Launch launch(task({"-n2"}, {"only", "worker 0", "await", "exit", "4", "end", "trap", "TERM", "tell",
                               "tell", "up", "trap", "INT", "exit", "wait"}));
  launch.hear(1);
  launch.open_gate();
  assert_lines(launch.hear(1), {"worker 1 TERM"});
  launch.send(SIGINT);
  launch.ends(4);
  assert_text(launch.all_err, "dist-launch: worker 0 exited with status 4; the others were ended\n");
}

void the_grace_ends(void**) {
  Launch launch(task({"-n1", "--grace=0"}, {"trap", "TERM", "ignore", "tell", "up", "wait"}));
  launch.hear(1);
  launch.send(SIGTERM);
  launch.ends(128 + SIGTERM);
  assert_words(launch.all_err, "worker 0 did not end within 0 s: killed\n");
}

void the_second_interrupt_kills(void**) {
  Launch launch(task({"-n2", "--grace=86400"}, {"trap", "INT", "tell", "child", "tell", "up", "wait"}));
  launch.hear(4);
  launch.send(SIGINT);
  assert_lines(launch.hear(2), {"worker 0 INT", "worker 1 INT"});
  launch.send(SIGINT);
  launch.ends(128 + SIGINT);
  assert_words(launch.all_err, "dist-launch: second SIGINT: killing all tasks\n");
  assert_text(launch.hear_rest(), "");
}

void user_signals_go_on_and_end_nothing(void**) {
  Launch launch(task({"-n2"}, {"trap", "USR1", "tell", "trap", "USR2", "tell", "tell", "up", "await"}));
  launch.hear(2);
  launch.send(SIGUSR1);
  assert_lines(launch.hear(2), {"worker 0 USR1", "worker 1 USR1"});
  launch.send(SIGUSR2);
  assert_lines(launch.hear(2), {"worker 0 USR2", "worker 1 USR2"});
  launch.open_gate(2);
  launch.ends(0);
}

// Like Ctrl-Z and fg.
void stops_and_goes_on(void**) {
  Launch launch(task({"-n2"}, {"trap", "TSTP", "tell", "trap", "CONT", "tell", "tell", "up", "await"}));
  launch.hear(2);
  launch.send(SIGTSTP);
  assert_lines(launch.hear(2), {"worker 0 TSTP", "worker 1 TSTP"});
  int status = 0;
  assert_int_equal(waitpid(launch.pid, &status, WUNTRACED), launch.pid);
  assert_true(WIFSTOPPED(status));
  launch.send(SIGCONT);
  // Each may receive it twice, because a terminal also stops and continues the tasks.
  std::string heard;
  while (heard.find("worker 0 CONT") == std::string::npos ||
         heard.find("worker 1 CONT") == std::string::npos) {
    heard += launch.hear(1)[0] + "\n";
  }
  launch.open_gate(2);
  launch.ends(0);
}

// A stopped task is continued, so that it can handle SIGTERM.
void stopped_tasks_end(void**) {
  Launch launch(
      task({"-n1", "--grace=86400"}, {"trap", "TERM", "exit", "tell", "up", "raise", "STOP", "wait"}));
  pid_t stopped = -1;
  launch.hear(1, &stopped);
  until_state(stopped, 'T');
  launch.send(SIGTERM);
  launch.ends(128 + SIGTERM);
}

// Like nohup.
void an_ignored_hangup_stays_ignored(void**) {
  Launch launch(task({"-n1"}, {"signals", "tell", "up", "await"}), {.ignored = SIGHUP});
  launch.hear(1);
  launch.send(SIGHUP);
  launch.open_gate();
  launch.ends(0);
  assert_words(launch.all_out, "SigIgn:\t0000000000000001\n");
}

}  // namespace

int main(int argc, char** argv) {
  take_paths(argc, argv);
  const CMUnitTest tests[] = {
      cmocka_unit_test(ending_signals_go_on),
      cmocka_unit_test(tasks_may_take_their_time),
      cmocka_unit_test(a_failure_before_the_signal_counts),
      cmocka_unit_test(the_grace_ends),
      cmocka_unit_test(the_second_interrupt_kills),
      cmocka_unit_test(user_signals_go_on_and_end_nothing),
      cmocka_unit_test(stops_and_goes_on),
      cmocka_unit_test(stopped_tasks_end),
      cmocka_unit_test(an_ignored_hangup_stays_ignored),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
