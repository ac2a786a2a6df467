// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Programs in JVMs of their own, for what a JVM can do once, or with options of its own. */
final class Jvm {
    private Jvm() {}

    /** Runs a main class of the test's with options; gives what it printed. */
    static String run(List<String> options, Class<?> program, String... args)
            throws IOException, InterruptedException {
        return run(options, Map.of(), program, args);
    }

    /** The same with variables of the environment. */
    static String run(List<String> options, Map<String, String> environment, Class<?> program, String... args)
            throws IOException, InterruptedException {
        List<String> all = new ArrayList<>(options);
        all.addAll(List.of("-cp", System.getProperty("java.class.path"), program.getName()));
        all.addAll(List.of(args));
        return java(environment, all);
    }

    /** Reads the files of a root folder. */
    interface Reader {
        void read(Path root) throws Exception;
    }

    /** Passes an entry of the class path, a jar or a folder, to a reader. */
    static void open(String entry, Reader reader) throws Exception {
        Path path = Path.of(entry);
        if (Files.isDirectory(path)) {
            reader.read(path);
            return;
        }
        try (FileSystem jar = FileSystems.newFileSystem(path)) {
            reader.read(jar.getPath("/"));
        }
    }

    /** `java` with all of its arguments; it has to end well. */
    static String java(List<String> args) throws IOException, InterruptedException {
        return java(Map.of(), args);
    }

    private static String java(Map<String, String> environment, List<String> args)
            throws IOException, InterruptedException {
        List<String> command =
                new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        command.addAll(args);
        ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().putAll(environment);
        Process process = builder.start();
        String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        check(process.waitFor() == 0, output);
        return output;
    }
}
