// SPDX-License-Identifier: Apache-2.0
// dist-launch --ps: the job ends with the chief. Only workers are restarted, never parameter servers.
#include <map>

#include "tests/tools/launch_support.hpp"

namespace {

const std::string kSays = "dist-launch: ";
// The message about a task that the test ended by SIGUSR2.
const std::string kFailed = " exited with status " + std::to_string(SIGUSR2);

// A job whose tasks are running and end on request: with status 0 on USR1, and with the signal's number on
// USR2.
class Servers {
 public:
  Servers(const Words& options, int num_tasks)
      : launch(task(Words{"--grace=86400"} + options,
                    {"env", "DIST_RESTART", "trap", "USR1", "well", "trap", "USR2", "exit", "trap", "TERM",
                     "last", "trap", "INT", "last", "tell", "up", "wait"})) {
    come_up(num_tasks);
  }

  // Waits until this number of tasks has started or restarted, and returns their names.
  Words come_up(int num_tasks) {
    Words names;
    while (num_tasks-- > 0) {
      auto [name, pid] = launch.hear_one();
      if (name.size() < 3 || name.substr(name.size() - 3) != " up") fail_msg("'%s' is not up", name.c_str());
      name.resize(name.size() - 3);
      pids_[name] = pid;
      names.push_back(name);
    }
    return sorted(names);
  }
  // Ends a task, and waits until the launcher has noticed.
  void end(const std::string& name, int signal) {
    assert_int_equal(kill(pids_.at(name), signal), 0);
    until_gone(pids_.at(name));
  }
  // Ends the chief and then all other tasks with success. No task received a signal or was started in the
  // meantime.
  void all_end_well(const Words& others) {
    end("chief 0", SIGUSR1);
    for (const auto& name : others) end(name, SIGUSR1);
    launch.ends(0);
    assert_text(launch.hear_rest(), "");
  }
  void assert_restarts(const Words& wanted) const { assert_lines(sorted(lines_of(launch.all_out)), wanted); }

  Launch launch;

 private:
  std::map<std::string, pid_t> pids_;
};

// ---- The end of the chief ----------------------------------------------------------------------------

void the_others_may_end_by_themselves(void**) {
  Servers job({"-n2", "--ps=2"}, 5);
  job.all_end_well({"ps 1", "worker 0", "ps 0", "worker 1"});
  assert_text(job.launch.all_err, "");
}

// As when the coordinator ends the others before itself.
void the_others_may_end_before(void**) {
  Servers job({"-n1", "--ps=1", "--restarts=9"}, 3);
  job.end("worker 0", SIGUSR1);
  job.end("ps 0", SIGUSR1);
  job.all_end_well({});
  assert_text(job.launch.all_err, "");
}

// After the chief has ended, failures of other tasks do not count, and no task is restarted.
void what_fails_after_the_chief_does_not_count(void**) {
  for (const char* what : {"--restart=task", "--restart=job"}) {
    Servers job({"-n2", "--ps=1", "--restarts=9", what}, 4);
    job.end("chief 0", SIGUSR1);
    job.end("worker 1", SIGKILL);
    job.end("ps 0", SIGUSR2);
    job.end("worker 0", SIGUSR2);
    job.launch.ends(0);
    assert_text(job.launch.all_err, "");
    assert_text(job.launch.hear_rest(), "");
  }
}

void who_stays_is_told_and_then_killed(void**) {
  Launch launch(task({"-n1", "--ps=1", "--grace=0"}, {"trap", "TERM", "ignore", "tell", "up", "only",
                                                      "chief 0", "await", "exit", "0", "end", "wait"}));
  launch.hear(3);
  launch.open_gate();
  launch.ends(0);
  assert_text(launch.all_err, kSays + "worker 0 did not end by itself within 0 s: sent SIGTERM\n" +  //
                                  kSays + "ps 0 did not end by itself within 0 s: sent SIGTERM\n" +  //
                                  kSays + "worker 0 did not end within 0 s: killed\n" +              //
                                  kSays + "ps 0 did not end within 0 s: killed\n");
  assert_text(launch.hear_rest(), "");
}

// If a busy machine does not run a task's handler within the grace period, the task is killed instead.
void who_stays_hears_sigterm(void**) {
  Launch launch(task({"-n1", "--ps=1", "--grace=0.5"}, {"trap", "TERM", "last", "tell", "up", "only",
                                                        "chief 0", "await", "exit", "0", "end", "wait"}));
  launch.hear(3);
  launch.open_gate();
  launch.ends(0);
  const std::string heard = launch.hear_rest();
  for (const std::string name : {"worker 0", "ps 0"}) {
    assert_words(launch.all_err, name + " did not end by itself within 0.5 s: sent SIGTERM\n");
    if (launch.all_err.find(name + " did not end within 0.5 s: killed\n") == std::string::npos) {
      assert_words(heard, name + " TERM ");
    }
  }
}

void the_chiefs_failure_is_the_jobs(void**) {
  Servers job({"-n2", "--ps=1"}, 4);
  job.end("chief 0", SIGUSR2);
  assert_lines(job.launch.hear(3), {"ps 0 TERM", "worker 0 TERM", "worker 1 TERM"});
  job.launch.ends(SIGUSR2);
  assert_text(job.launch.all_err, kSays + "chief 0" + kFailed + "; the others were ended\n");
  Servers killed({"-n1", "--ps=1"}, 3);
  killed.end("chief 0", SIGKILL);
  killed.launch.ends(128 + SIGKILL);
  assert_text(killed.launch.all_err, kSays + "chief 0 was killed by SIGKILL; the others were ended\n");
}

// ---- Lost workers and ps ----------------------------------------------------------------------------

void workers_start_again_alone(void**) {
  Servers job({"-n2", "--ps=1", "--restarts=2"}, 4);
  job.end("worker 1", SIGKILL);
  assert_lines(job.come_up(1), {"worker 1"});
  job.end("worker 0", SIGUSR2);
  assert_lines(job.come_up(1), {"worker 0"});
  job.all_end_well({"ps 0", "worker 0", "worker 1"});
  assert_text(job.launch.all_err,
              kSays + "worker 1 was killed by SIGKILL; restarting it in 0.1 s (restart 1 of 2)\n" + kSays +
                  "worker 0" + kFailed + "; restarting it in 0.2 s (restart 2 of 2)\n");
  job.assert_restarts({"[chief 0] DIST_RESTART is not set", "[ps 0] DIST_RESTART is not set",
                       "[worker 0] DIST_RESTART is not set", "[worker 0] DIST_RESTART=1",
                       "[worker 1] DIST_RESTART is not set", "[worker 1] DIST_RESTART=1"});
}

void the_job_goes_on_without_workers(void**) {
  const std::string wanted =
      kSays + "worker 1 was killed by SIGKILL; no restart is left: the job continues without it\n" + kSays +
      "worker 0" + kFailed + "; no restart is left: the job continues without any worker\n";
  for (const char* what : {"--restart=task", "--restart=job"}) {
    Servers job({"-n3", "--ps=1", what}, 5);
    job.end("worker 1", SIGKILL);
    job.end("worker 2", SIGUSR1);  // its success is not reported
    job.end("worker 0", SIGUSR2);
    job.all_end_well({"ps 0"});
    assert_text(job.launch.all_err, wanted);
  }
}

// A worker that is about to restart counts as a worker of the job.
void a_worker_that_comes_again_is_there(void**) {
  Servers job({"-n2", "--ps=1", "--restarts=1"}, 4);
  job.end("worker 0", SIGKILL);
  job.end("worker 1", SIGKILL);
  assert_lines(job.come_up(1), {"worker 0"});
  job.all_end_well({"worker 0", "ps 0"});
  assert_text(job.launch.all_err,
              kSays + "worker 0 was killed by SIGKILL; restarting it in 0.1 s (restart 1 of 1)\n" + kSays +
                  "worker 1 was killed by SIGKILL; no restart is left: the job continues without it\n");
}

// A worker that was about to restart when the chief ended would wait forever.
void no_worker_starts_after_the_chief(void**) {
  Launch launch(task({"-n1", "--ps=1", "--restarts=1", "--grace=86400"},
                     {"only", "worker 0", "first", "exit", "1", "end", "only", "worker 0", "wait", "end",
                      "trap", "USR1", "well", "trap", "USR2", "tell", "tell", "up", "wait"}));
  std::map<std::string, pid_t> pids;
  while (pids.size() < 2) pids.insert(launch.hear_one());
  assert_words(line_of(launch.err), "worker 0 exited with status 1; restarting it in 0.1 s");
  assert_int_equal(kill(pids.at("chief 0 up"), SIGUSR1), 0);
  until_gone(pids.at("chief 0 up"));
  // The launcher forwards this signal after it has noticed that the chief ended. A worker that started
  // earlier is killed by it.
  launch.send(SIGUSR2);
  assert_lines(launch.hear(1), {"ps 0 USR2"});
  assert_int_equal(kill(pids.at("ps 0 up"), SIGUSR1), 0);
  launch.ends(0);
  assert_text(launch.all_err, "");
}

void the_chief_decides_when_a_ps_is_lost(void**) {
  const std::string lost =
      kSays + "ps 0 was killed by SIGKILL; its variables are lost: the chief decides how the job ends\n";
  // Restarts are left, but a ps is never restarted on its own.
  Servers well({"-n1", "--ps=2", "--restarts=3"}, 4);
  well.end("ps 0", SIGKILL);
  well.all_end_well({"ps 1", "worker 0"});
  assert_text(well.launch.all_err, lost);
  Servers failing({"-n1", "--ps=2"}, 4);
  failing.end("ps 0", SIGKILL);
  failing.end("chief 0", SIGUSR2);
  failing.launch.ends(SIGUSR2);
  assert_text(failing.launch.all_err, lost + kSays + "chief 0" + kFailed + "; the others were ended\n");
}

// ---- Restarting the whole job ------------------------------------------------------------------------

void the_chiefs_failure_starts_all_again(void**) {
  Servers job({"-n2", "--ps=2", "--restarts=2"}, 5);
  job.end("worker 1", SIGKILL);
  assert_lines(job.come_up(1), {"worker 1"});
  job.end("ps 1", SIGUSR2);
  job.end("chief 0", SIGUSR2);
  assert_lines(job.launch.hear(3), {"ps 0 TERM", "worker 0 TERM", "worker 1 TERM"});
  assert_lines(job.come_up(5), {"chief 0", "ps 0", "ps 1", "worker 0", "worker 1"});
  job.all_end_well({"ps 0", "ps 1", "worker 0", "worker 1"});
  assert_text(job.launch.all_err,
              kSays + "worker 1 was killed by SIGKILL; restarting it in 0.1 s (restart 1 of 2)\n" + kSays +
                  "ps 1" + kFailed + "; its variables are lost: the chief decides how the job ends\n" +
                  kSays + "chief 0" + kFailed +
                  "; ending all tasks, and restarting them 0.2 s later (restart 2 of 2)\n");
  job.assert_restarts(
      {"[chief 0] DIST_RESTART is not set", "[chief 0] DIST_RESTART=1", "[ps 0] DIST_RESTART is not set",
       "[ps 0] DIST_RESTART=1", "[ps 1] DIST_RESTART is not set", "[ps 1] DIST_RESTART=1",
       "[worker 0] DIST_RESTART is not set", "[worker 0] DIST_RESTART=1",
       "[worker 1] DIST_RESTART is not set", "[worker 1] DIST_RESTART=1", "[worker 1] DIST_RESTART=2"});
}

// Tasks that have already succeeded, because the coordinator ended them, are started again too.
void whatever_the_others_were(void**) {
  Servers job({"-n3", "--ps=1", "--restarts=1"}, 5);
  job.end("worker 0", SIGUSR1);
  job.end("ps 0", SIGUSR1);
  job.end("chief 0", SIGKILL);
  assert_lines(job.launch.hear(2), {"worker 1 TERM", "worker 2 TERM"});
  assert_lines(job.come_up(5), {"chief 0", "ps 0", "worker 0", "worker 1", "worker 2"});
  // No restart is left.
  job.end("worker 2", SIGKILL);
  job.end("chief 0", SIGUSR2);
  assert_lines(job.launch.hear(3), {"ps 0 TERM", "worker 0 TERM", "worker 1 TERM"});
  job.launch.ends(SIGUSR2);
  assert_text(job.launch.all_err,
              kSays + "chief 0 was killed by SIGKILL; ending all tasks, and restarting them 0.1 s later " +
                  "(restart 1 of 1)\n" + kSays +
                  "worker 2 was killed by SIGKILL; no restart is left: the job continues without it\n" +
                  kSays + "chief 0" + kFailed + "; the others were ended\n");
}

// TF_CONFIG stays the same, and with it the ports of all tasks.
void a_new_attempt_has_the_same_places(void**) {
  Launch launch(task({"-n2", "--ps=1", "--restarts=1", "--grace=86400"},
                     {"env", "TF_CONFIG", "env", "DIST_JOB_SECRET", "tell", "up", "only", "chief 0", "first",
                      "await", "exit", "3", "end", "first", "wait", "end"}));
  launch.hear(4);
  launch.open_gate();
  launch.ends(0);
  const Words lines = sorted(lines_of(launch.all_out));
  assert_int_equal(lines.size(), 16);
  for (std::size_t i = 0; i < lines.size(); i += 2) assert_text(lines[i], lines[i + 1]);
}

// With --restart=job, the first failure of any task restarts all of them at once.
void whoever_fails_where_all_are_restarted(void**) {
  for (const std::string name : {"worker 0", "ps 0", "chief 0"}) {
    Servers job({"-n1", "--ps=1", "--restarts=1", "--restart=job"}, 3);
    job.end(name, SIGKILL);
    job.launch.hear(2);  // SIGTERM to the others
    assert_lines(job.come_up(3), {"chief 0", "ps 0", "worker 0"});
    job.all_end_well({"ps 0", "worker 0"});
    assert_text(job.launch.all_err, kSays + name +
                                        " was killed by SIGKILL; ending all tasks, and restarting " +
                                        "them 0.1 s later (restart 1 of 1)\n");
  }
}

// ---- Signals ----------------------------------------------------------------------------------------

void signals_go_to_all(void**) {
  Servers job({"-n1", "--ps=1", "--restarts=5"}, 3);
  job.launch.send(SIGINT);
  assert_lines(job.launch.hear(3), {"chief 0 INT", "ps 0 INT", "worker 0 INT"});
  job.launch.ends(128 + SIGINT);
  assert_text(job.launch.all_err, kSays + "SIGINT was forwarded to all tasks; a second SIGINT kills them\n");
}

// The chief's exit status is the job's. Ctrl-C then ends the wait for the others.
void a_signal_after_the_chief_ends_the_wait(void**) {
  Servers job({"-n1", "--ps=1"}, 3);
  job.end("chief 0", SIGUSR1);
  job.launch.send(SIGINT);
  assert_lines(job.launch.hear(2), {"ps 0 INT", "worker 0 INT"});
  job.launch.ends(0);
  assert_text(job.launch.all_err, kSays + "SIGINT was forwarded to all tasks; a second SIGINT kills them\n");
}

// Output that is lost after the chief has succeeded makes the job fail.
void output_after_the_chief_counts(void**) {
  Launch launch(
      task({"-n1", "--ps=1", "--grace=86400"}, {"trap", "USR1", "well", "trap", "INT", "tell", "tell", "up",
                                                "only", "worker 0", "await", "say", "one", "end", "wait"}));
  pid_t chief = -1;
  for (int i = 0; i < 3; ++i) {
    const auto [words, pid] = launch.hear_one();
    if (words == "chief 0 up") chief = pid;
  }
  assert_int_equal(kill(chief, SIGUSR1), 0);
  until_gone(chief);
  launch.send(SIGINT);
  assert_lines(launch.hear(2), {"ps 0 INT", "worker 0 INT"});
  launch.close_output();
  launch.open_gate();
  assert_int_equal(launch.end(), 125);
  assert_text(rest_of(launch.err), kSays + "SIGINT was forwarded to all tasks; a second SIGINT kills them\n" +
                                       kSays +
                                       "cannot write to standard output: Broken pipe; the job was ended\n");
}

void a_signal_ends_it_before_all_start_again(void**) {
  Launch launch(
      task({"-n1", "--ps=1", "--restarts=1000000"}, {"only", "chief 0", "exit", "1", "end", "wait"}));
  assert_words(line_of(launch.err), "chief 0 exited with status 1; ending all tasks, and restarting them ");
  launch.send(SIGTERM);
  launch.ends(128 + SIGTERM);
  assert_text(launch.hear_rest(), "");
}

}  // namespace

int main(int argc, char** argv) {
  take_paths(argc, argv);
  const CMUnitTest tests[] = {
      cmocka_unit_test(the_others_may_end_by_themselves),
      cmocka_unit_test(the_others_may_end_before),
      cmocka_unit_test(what_fails_after_the_chief_does_not_count),
      cmocka_unit_test(who_stays_is_told_and_then_killed),
      cmocka_unit_test(who_stays_hears_sigterm),
      cmocka_unit_test(the_chiefs_failure_is_the_jobs),
      cmocka_unit_test(workers_start_again_alone),
      cmocka_unit_test(the_job_goes_on_without_workers),
      cmocka_unit_test(a_worker_that_comes_again_is_there),
      cmocka_unit_test(no_worker_starts_after_the_chief),
      cmocka_unit_test(the_chief_decides_when_a_ps_is_lost),
      cmocka_unit_test(the_chiefs_failure_starts_all_again),
      cmocka_unit_test(whatever_the_others_were),
      cmocka_unit_test(a_new_attempt_has_the_same_places),
      cmocka_unit_test(whoever_fails_where_all_are_restarted),
      cmocka_unit_test(signals_go_to_all),
      cmocka_unit_test(a_signal_after_the_chief_ends_the_wait),
      cmocka_unit_test(output_after_the_chief_counts),
      cmocka_unit_test(a_signal_ends_it_before_all_start_again),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
