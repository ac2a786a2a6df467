// SPDX-License-Identifier: Apache-2.0
// The command line of dist-launch: rejected arguments and their messages.
#include <sys/stat.h>

#include "tests/tools/launch_support.hpp"

namespace {

// The program must not be started: its output would be found.
void refuses(const Words& options, const std::string& words) {
  Launch launch(task(options, {"say", "started"}));
  launch.ends(2);
  assert_text(launch.all_out, "");
  assert_words(launch.all_err, "dist-launch: " + words);
  assert_words(launch.all_err, "\nTry 'dist-launch --help' for more information.\n");
  assert_int_equal(lines_of(launch.all_err).size(), 2);
}

void numbers(void**) {
  for (const char* text :
       {"", "0", "-1", "+2", "2x", "x", " 2", "0x2", "65537", "99999999999999999999", "1.5"}) {
    refuses({"-n", text}, std::string("-n is \"") + text + "\", but must be a whole number from 1 to 65536");
  }
  refuses({"-n2", "--replicas=0"}, "--replicas is \"0\", but must be a whole number from 1 to 2147483647");
  refuses({"-n2", "--replicas=2147483648"}, "--replicas is \"2147483648\"");
  for (const char* text : {"", "0", "-1", "+1", "1x", "x", "65535", "99999999999999999999", "1.5"}) {
    refuses({"-n2", "--ps", text},
            std::string("--ps is \"") + text + "\", but must be a whole number from 1 to 65534");
  }
  refuses({"-n2", "--restarts=many"}, "--restarts is \"many\", but must be a whole number from 0 to 1000000");
  for (const char* text : {"", "-1", "inf", "nan", "1e3", "1s", "86401", ".5", "0x1"}) {
    refuses({"-n2", "--grace", text},
            std::string("--grace is \"") + text + "\", but must be seconds from 0 to 86400");
  }
  refuses({"-n65534", "--ps=2"},
          "65534 workers, 2 ps and the chief are more than 65536 tasks on one machine");
  refuses({"-n65536", "--ps=254"}, "65536 workers, 254 ps and the chief are more than 65536 tasks");
}

void words(void**) {
  refuses({}, "-n is missing. Pass the number of workers");
  refuses({"--ps=2"},
          "--ps needs --workers, the number of workers beside the ps and the "
          "chief, as in: dist-launch --ps 2 --workers 2 -- PROGRAM");
  refuses({"-n2", "--ps=1", "--chief"}, "--chief cannot be used with --ps, which already adds a chief");
  refuses({"-n2", "--restart=all"}, "--restart is \"all\", but must be task or job");
  refuses({"-n2", "--workres=3"}, "\"--workres=3\" is not an option");
  refuses({"-n2", "--res=3"}, "\"--res=3\" is not an option, or the start of several");
  refuses({"-n2", "-x"}, "-x is not an option");
  refuses({"-n2", "--chief=1"}, "--chief takes no value");
  refuses({"-n2", "--restart=" + std::string(500, 'a') + "\n"},
          "--restart is \"" + std::string(60, 'a') + "...\",");
  refuses({"-n2", "--restart=a\nb\033"}, "--restart is \"a?b?\",");
  Launch without_program({"-n2"});
  without_program.ends(2);
  assert_words(without_program.all_err, "the program is missing, as in: dist-launch -n 2 -- PROGRAM");
  Launch without_value({"--grace"});
  without_value.ends(2);
  assert_words(without_value.all_err, "--grace needs a value");
}

void hosts(void**) {
  const auto refuses_list = [](const std::string& list, const std::string& why) {
    refuses({"--index=0", "--hosts", list}, "in --hosts, " + why);
  };
  refuses_list("", "\"\" is not HOST or HOST:TASKS");
  refuses_list("a,", "\"\" is not HOST");
  refuses_list("a,,b", "\"\" is not HOST");
  refuses_list(":2", "\":2\" is not HOST");
  refuses_list("a b:2", "\"a b:2\" is not HOST");
  refuses_list("a/b", "\"a/b\" is not HOST");
  refuses_list("a\"", "\"a\"\" is not HOST");
  refuses_list("::1", "\"::1\" has more than one colon. Put an IPv6 address in brackets");
  refuses_list("[::1", "\"[::1\" has no closing bracket");
  refuses_list("[1.2.3.4]:2", "\"[1.2.3.4]:2\" has no IPv6 address between its brackets");
  refuses_list("[]", "\"[]\" has no IPv6 address");
  refuses_list("[::1%]", "\"[::1%]\" has no IPv6 address");
  refuses_list("[::1]2", "\"[::1]2\" has text other than :TASKS after its brackets");
  refuses_list("a:", "the number of tasks on a is \"\", but must be a whole number from 1 to 65536");
  refuses_list("a:0", "the number of tasks on a is \"0\"");
  refuses_list("a:65537", "the number of tasks on a is \"65537\"");
  refuses_list("a:2:3", "\"a:2:3\" has more than one colon");
  refuses_list("[::1]:x", "the number of tasks on [::1] is \"x\"");
  refuses_list(std::string(600, 'a'), "\"" + std::string(60, 'a') + "...\" is too long for a host name");
}

void hosts_and_others(void**) {
  refuses({"--hosts=a:2,b"}, "--hosts needs --index");
  refuses({"-n2", "--index=0"}, "--index needs --hosts");
  refuses({"-n2", "--port=3000"}, "--port needs --hosts");
  refuses({"--hosts=a:2,b", "--index=2"}, "--index is 2, but must be 0 to 1");
  refuses({"--hosts=a:2,B,A", "--index=0"}, "--hosts names \"a\" twice");
  refuses({"--hosts=a:2,b", "--index=0", "-n2"}, "-n is 2, but --hosts has 3 tasks");
  refuses({"--hosts=a,b:3", "--index=0", "--port=65534"},
          "--port is 65534, so the last of 3 tasks on a machine");
  refuses({"--hosts=a", "--index=0", "--port=0"}, "--port is \"0\"");
  refuses({"--hosts=a", "--index=0", "--ps=1"}, "--ps works on one machine only");
  refuses({"--hosts=a", "--index=0", "--ps=1", "--chief"}, "--ps works on one machine only");
  refuses({"--hosts=a,b", "--index=0"}, "DIST_JOB_SECRET is not set. With --hosts, set it to the same");
  std::string many;
  for (int i = 0; i < 257; ++i) many += "h" + std::to_string(i) + ":256,";
  refuses({"--index=0", "--hosts=" + many + "z"},
          "--hosts has 65793 tasks, but a cluster can have at most 65536");
  many.clear();
  for (int i = 0; i < 40; ++i) many += std::string(100, 'h') + std::to_string(i) + ":256,";
  Launch launch(task({"--index=0", "--hosts=" + many + "z"}, {}),
                {.environment = {{"DIST_JOB_SECRET", "s"}}});
  launch.ends(2);
  assert_words(launch.all_err, "bytes, but a variable can have at most 131072");
}

void help_and_version(void**) {
  for (const char* option : {"--help", "-h"}) {
    Launch help({option});
    help.ends(0);
    assert_text(help.all_err, "");
    for (const auto& line : lines_of(help.all_out)) assert_in_range(line.size(), 0, 80);
    for (const char* name :
         {"--workers", "--replicas", "--chief", "--ps", "--restarts", "--restart=", "--grace", "--hosts",
          "--index", "--port", "--no-prefix", "--help", "--version", "DIST_JOB_SECRET"}) {
      assert_words(help.all_out, name);
    }
  }
  Launch version({"--version"});
  version.ends(0);
  assert_text(version.all_out, "dist-launch (libdist) " LIBDIST_VERSION "\n");
  // If the help cannot be printed, the launcher fails.
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  Launch unread({"--help"}, {.output = full});
  unread.ends(125);
  close(full);
  assert_words(unread.all_err, "cannot write to standard output: No space left on device");
}

void programs(void**) {
  Launch missing({"-n3", "no-such-program"});
  missing.ends(127);
  assert_text(missing.all_err, "dist-launch: no-such-program: not found\n");
  Launch in_missing({"-n3", "--", "/no/such/program"});
  in_missing.ends(127);
  assert_text(in_missing.all_err, "dist-launch: /no/such/program: not found\n");
  Launch empty({"-n3", ""});
  empty.ends(127);
  Launch folder({"-n3", "/"});
  folder.ends(126);
  assert_text(folder.all_err, "dist-launch: /: cannot be executed: Is a directory\n");
}

// Makes a file with this text and these permissions.
std::string make_file(const char* text, mode_t mode) {
  char path[] = "/tmp/dist-launch-XXXXXX";
  const int fd = mkostemp(path, O_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, std::string(text).size()), std::string(text).size());
  assert_int_equal(fchmod(fd, mode), 0);
  close(fd);
  return path;
}

void scripts(void**) {
  const std::string plain = make_file("echo $1\n", 0600);
  Launch refused({"-n2", plain});
  refused.ends(126);
  assert_text(refused.all_err, "dist-launch: " + plain + ": cannot be executed: Permission denied\n");
  unlink(plain.c_str());
  // As in a shell, a file without an interpreter line is run by sh.
  const std::string script = make_file("echo got \"$1\"\n", 0700);
  Launch run({"-n1", script, "a b"});
  run.ends(0);
  assert_text(run.all_out, "[worker 0] got a b\n");
  unlink(script.c_str());
  // Found in PATH, after a folder that does not exist.
  const std::size_t slash = script.rfind('/');
  const std::string by_path = make_file("#!/bin/sh\necho found\n", 0700);
  Launch found({"-n1", by_path.substr(slash + 1)}, {.environment = {{"PATH", "/no/such:/tmp"}}});
  found.ends(0);
  assert_text(found.all_out, "[worker 0] found\n");
  unlink(by_path.c_str());
  // Only execve() detects that this file cannot be executed. It is reported once, and not tried again.
  const std::string orphan = make_file("#!/no/such/interpreter\n", 0700);
  Launch unrun({"-n3", "--restarts=5", orphan});
  unrun.ends(127);
  assert_text(unrun.all_err, "dist-launch: " + orphan + ": cannot be executed: No such file or directory; " +
                                 "the others were ended\n");
  unlink(orphan.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  take_paths(argc, argv);
  const CMUnitTest tests[] = {
      cmocka_unit_test(numbers),          cmocka_unit_test(words),    cmocka_unit_test(hosts),
      cmocka_unit_test(hosts_and_others), cmocka_unit_test(programs), cmocka_unit_test(help_and_version),
      cmocka_unit_test(scripts),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
