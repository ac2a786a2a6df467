// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/** Dist.info(), Dist.check() and the program Info: in JVMs of their own, which have an environment of their own. */
public final class InfoTest {
    private static final String PROGRAM = "/native/linux-x86_64-glibc/dist-info";

    private InfoTest() {}

    static void addTo(Tap tap) {
        tap.add("info describes the library of the jar, and leaves no file", InfoTest::fromJar);
        tap.add("a check finds a problem in TF_CONFIG", InfoTest::findsProblem);
        tap.add("info describes a library outside of the jar", InfoTest::fromFolder);
        tap.add("the command passes its arguments and the status of dist-info", InfoTest::command);
    }

    /** Prints the result of Dist.info() or Dist.check(), or the exception. */
    public static void main(String[] args) {
        try {
            Info info = args[0].equals("check") ? Dist.check() : Dist.info();
            System.out.println(info.isOk() + " " + info.json());
        } catch (DistException e) {
            System.out.println(e.status() + " " + e.getMessage());
        }
    }

    private static String version() {
        int version = Dist.version();
        return version / 10000 + "." + version / 100 % 100 + "." + version % 100;
    }

    private static void says(String output, String... words) {
        for (String each : words) {
            check(output.contains(each), each, output);
        }
    }

    private static void remove(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }

    private static void fromJar() throws Exception {
        Path folder = Files.createTempDirectory("libdist-test");
        try {
            String output = Jvm.run(List.of("-Djava.io.tmpdir=" + folder), InfoTest.class, "info");
            says(output, "true {\"version\":\"" + version() + "\",\"library\":\"" + folder + "/libdist-info-");
        } finally {
            Files.delete(folder); // it is empty
        }
    }

    private static void findsProblem() throws Exception {
        String output = Jvm.run(List.of(), Map.of("TF_CONFIG", "{"), InfoTest.class, "check");
        says(output, "false {", "\"outcome\":\"problem\"", "TF_CONFIG is not JSON");
    }

    private static void fromFolder() throws Exception {
        Path folder = LoaderTest.unpacked(Map.of());
        Path other = Files.createTempDirectory("libdist-test");
        try {
            List<String> options = List.of("-Ddist.native=" + folder);
            Map<String, String> environment = Map.of("PATH", other.toString());
            says(Jvm.run(options, environment, InfoTest.class, "info"), "NOT_FOUND ", folder.toString(),
                    folder.resolveSibling("bin").toString(), "PATH (\"" + other + "\")", "Install the programs");
            try (InputStream in = InfoTest.class.getResourceAsStream(PROGRAM)) {
                Files.copy(in, other.resolve("dist-info"));
            }
            check(other.resolve("dist-info").toFile().setExecutable(true));
            says(Jvm.run(options, environment, InfoTest.class, "info"),
                    "true {\"version\":\"" + version() + "\",\"library\":\"" + folder + "/libdist.so.1\"");
            // The one beside the library comes first.
            Path bad = Files.writeString(folder.resolve("dist-info"), "#!/bin/sh\necho 'no library' >&2\nexit 127\n");
            check(bad.toFile().setExecutable(true));
            says(Jvm.run(options, environment, InfoTest.class, "info"),
                    "FAILED_PRECONDITION " + bad + " failed with status 127: no library");
            Files.writeString(bad, "#!/nonexistent\n");
            says(Jvm.run(options, environment, InfoTest.class, "info"), "FAILED_PRECONDITION cannot run dist-info: ", bad.toString());
        } finally {
            remove(folder);
            remove(other);
        }
    }

    private static void command() throws Exception {
        equal("dist-info (libdist) " + version() + "\n", Jvm.run(List.of(), Info.class, "--version"));
        ProcessBuilder builder = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp", System.getProperty("java.class.path"), Info.class.getName(), "--check");
        builder.environment().put("TF_CONFIG", "{");
        Process process = builder.start();
        says(new String(process.getInputStream().readAllBytes()), "TF_CONFIG is not JSON");
        equal(1, process.waitFor());
    }
}
