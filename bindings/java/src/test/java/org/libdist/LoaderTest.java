// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** How the native libraries are found, and what is said where they are not: in JVMs of their own. */
public final class LoaderTest {
    private static final String FOLDER = "native/linux-x86_64-glibc/";

    private LoaderTest() {}

    static void addTo(Tap tap) {
        tap.add("from the jar", () -> says(run(List.of()), "version 100"));
        tap.add("by -Ddist.native, without a folder for temporary files", LoaderTest::override);
        tap.add("an error lists what was tried", LoaderTest::listsWhatWasTried);
        tap.add("a machine without libtbb", LoaderTest::withoutTbb);
        tap.add("two class loaders",
                () -> says(run(List.of(), "twice"), "version 100",
                                "libdist is loaded already, by another class loader"));
    }

    /**
     * The program of the other JVM: says which version it found, or why none; "twice": by two class loaders.
     */
    public static void main(String[] args) throws Exception {
        if (args.length == 0) {
            try {
                System.out.println("version " + Dist.version());
            } catch (LinkageError e) {
                System.out.println(e);
            }
            return;
        }
        List<URL> jars = new ArrayList<>();
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            jars.add(Path.of(entry).toUri().toURL());
        }
        ClassLoader parent = ClassLoader.getPlatformClassLoader();
        try (URLClassLoader first = new URLClassLoader(jars.toArray(new URL[0]), parent);
                URLClassLoader second = new URLClassLoader(jars.toArray(new URL[0]), parent)) {
            for (ClassLoader loader : new ClassLoader[] {first, second}) {
                try {
                    Object version = loader.loadClass("org.libdist.Dist").getMethod("version").invoke(null);
                    System.out.println("version " + version);
                } catch (InvocationTargetException e) {
                    System.out.println(e.getCause());
                }
            }
        }
    }

    private static String run(List<String> options, String... args) throws IOException, InterruptedException {
        return Jvm.run(options, LoaderTest.class, args);
    }

    private static void says(String output, String... words) {
        for (String each : words) {
            check(output.contains(each), each, output);
        }
    }

    /** The jar's libraries in a folder, changed by name. */
    private static Path unpacked(Map<String, String> renamed) throws IOException {
        Path folder = Files.createTempDirectory("libdist-test");
        for (String name : List.of("libdist.so.0", "libdist_java.so")) {
            try (InputStream in = LoaderTest.class.getResourceAsStream("/" + FOLDER + name)) {
                byte[] bytes = in.readAllBytes();
                for (Map.Entry<String, String> rename : renamed.entrySet()) {
                    replace(bytes, rename.getKey(), rename.getValue());
                }
                Files.write(folder.resolve(name), bytes);
            }
        }
        return folder;
    }

    /** In the names of libraries that a library needs: as long, so that nothing else moves. */
    private static void replace(byte[] bytes, String from, String to) {
        byte[] old = (from + "\0").getBytes(StandardCharsets.US_ASCII);
        byte[] put = (to + "\0").getBytes(StandardCharsets.US_ASCII);
        for (int at = 0; at + old.length <= bytes.length; at++) {
            if (Arrays.equals(bytes, at, at + old.length, old, 0, old.length)) {
                System.arraycopy(put, 0, bytes, at, put.length);
            }
        }
    }

    private static void remove(Path folder) throws IOException {
        for (String name : List.of("libdist.so.0", "libdist_java.so")) {
            Files.deleteIfExists(folder.resolve(name));
        }
        Files.delete(folder);
    }

    private static void override() throws IOException, InterruptedException {
        Path folder = unpacked(Map.of());
        try {
            says(run(List.of("-Ddist.native=" + folder, "-Djava.io.tmpdir=/nonexistent")), "version 100");
        } finally {
            remove(folder);
        }
    }

    private static void listsWhatWasTried() throws IOException, InterruptedException {
        says(run(List.of("-Ddist.native=/nonexistent")), "UnsatisfiedLinkError",
                "/nonexistent/libdist_java.so: not there", "-Ddist.native=DIR");
        says(run(List.of("-Djava.io.tmpdir=/nonexistent", "-Djava.library.path=/neither")),
                "UnsatisfiedLinkError",
                "the jar's " + FOLDER.substring(0, FOLDER.length() - 1) + ", by way of /nonexistent",
                "java.library.path (/neither)");
        Path folder = Files.createTempDirectory("libdist-test");
        try {
            Files.writeString(folder.resolve("libdist_java.so"), "no library ".repeat(1000));
            says(run(List.of("-Ddist.native=" + folder)),
                    folder + "/libdist_java.so: ", "invalid ELF header");
        } finally {
            Files.delete(folder.resolve("libdist_java.so"));
            Files.delete(folder);
        }
    }

    private static void withoutTbb() throws IOException, InterruptedException {
        Path folder = unpacked(Map.of("libtbb.so.12", "libtbb.so.xx"));
        try {
            says(run(List.of("-Ddist.native=" + folder)), "this machine has no libtbb.so.xx (oneTBB",
                    "Debian, Ubuntu: libtbb12");
        } finally {
            remove(folder);
        }
    }
}
