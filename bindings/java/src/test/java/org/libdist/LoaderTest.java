// SPDX-License-Identifier: Apache-2.0

package org.libdist;

import static org.libdist.Tap.check;
import static org.libdist.Tap.equal;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.WeakReference;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.FloatBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Stream;
import javax.tools.ToolProvider;

/** How the native libraries are found, and what is said where they are not: in JVMs of their own. */
public final class LoaderTest {
    private static final String FOLDER = "native/linux-x86_64-glibc/";

    private LoaderTest() {}

    static void addTo(Tap tap) {
        tap.add("from the jar", () -> says(run(List.of()), "version 200"));
        tap.add("the modules for several processes, from the jar", LoaderTest::modules);
        tap.add("by -Ddist.native, without a folder for temporary files", LoaderTest::override);
        tap.add("an error lists what was tried", LoaderTest::listsWhatWasTried);
        tap.add("a machine without a library that is needed", LoaderTest::withoutLibraries);
        tap.add("whatever is used first and next says it", LoaderTest::everyUseSays);
        tap.add("as a module of a modular program", LoaderTest::asModule);
        tap.add("in a fat jar", LoaderTest::inFatJar);
        tap.add("a relative folder for temporary files", LoaderTest::relativeTemporaryFolder);
        tap.add("ten class loaders, one after the other", () -> says(run(List.of(), "again", "10"), "10 collected"));
        tap.add("ten class loaders, by -Ddist.native", LoaderTest::againByOverride);
        tap.add("two class loaders",
                () -> says(run(List.of(), "twice"), "version 200",
                                "libdist is loaded already, by another class loader"));
    }

    /**
     * The program of the other JVM: says which version it found, or why none; "twice": by two class loaders;
     * "uses WAY": by another way first.
     */
    public static void main(String[] args) throws Exception {
        if (args.length == 2 && args[0].equals("again")) {
            again(Integer.parseInt(args[1]));
            return;
        }
        if (args.length == 2) {
            uses(args[1]);
            return;
        }
        if (args.length == 1 && args[0].equals("features")) {
            System.out.println("grpc " + Dist.hasFeature("grpc") + ", gloo " + Dist.hasFeature("gloo"));
            return;
        }
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

    /** Uses libdist in a class loader after another, and says how many of these were collected. */
    private static void again(int times) throws Exception {
        int collected = 0;
        for (int k = 0; k < times; k++) {
            WeakReference<ClassLoader> loader = useOnce();
            for (int round = 0; round < 1000 && loader.get() != null; round++) {
                System.gc();
                Thread.sleep(10);
            }
            collected += loader.get() == null ? 1 : 0;
        }
        System.out.println(collected + " collected");
        Thread.getAllStackTraces().keySet().stream().map(Thread::getName).sorted().forEach(System.out::println);
    }

    private static WeakReference<ClassLoader> useOnce() throws Exception {
        List<URL> jars = new ArrayList<>();
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            jars.add(Path.of(entry).toUri().toURL());
        }
        try (URLClassLoader loader =
                        new URLClassLoader(jars.toArray(new URL[0]), ClassLoader.getPlatformClassLoader())) {
            loader.loadClass("org.libdist.LoaderTest").getMethod("useAll").invoke(null);
            return new WeakReference<>(loader);
        }
    }

    /** What an application does: threads of all kinds call into Java. */
    public static void useAll() throws Exception {
        StrategyOptions options =
                StrategyOptions.DEFAULT.numReplicas(2).threads(ReplicaThreads.LIBRARY).log((level, text) -> {});
        try (Strategy strategy = Strategy.create(options)) {
            strategy.run(replica -> {
                FloatBuffer sum = DirectBuffers.of(1f, replica.id());
                replica.allReduce(ReduceOp.SUM, sum);
                equal(2f, sum.get(0));
                replica.parallelFor(0, 64, 1, (begin, end) -> {});
            });
            equal(7, strategy.submit(replica -> 7).get());
            Strategy.current();
            Replica.current();
        }
    }

    private static void againByOverride() throws Exception {
        Path folder = unpacked(Map.of());
        try {
            says(run(List.of("-Ddist.native=" + folder), "again", "10"), "10 collected");
        } finally {
            remove(folder);
        }
    }

    /** The modules in the jar can be loaded without any setting, and the temporary folder is empty afterwards. */
    private static void modules() throws Exception {
        boolean grpc = LoaderTest.class.getResource("/" + FOLDER + "libdist-grpc.so") != null;
        boolean gloo = LoaderTest.class.getResource("/" + FOLDER + "libdist-gloo.so") != null;
        Path folder = Files.createTempDirectory("libdist-test");
        try {
            List<String> options = List.of("-Djava.io.tmpdir=" + folder);
            says(Jvm.run(options, Map.of("DIST_MODULE_FOLDER", ""), LoaderTest.class, "features"),
                    "grpc " + grpc + ", gloo " + gloo);
        } finally {
            Files.delete(folder); // it is empty: the JVM has removed the modules
        }
    }

    private static void relativeTemporaryFolder() throws Exception {
        Path folder = Files.createTempDirectory(Path.of("").toAbsolutePath(), "libdist-test-");
        try {
            says(run(List.of("-Djava.io.tmpdir=" + folder.getFileName())), "version 200");
        } finally {
            Files.delete(folder); // it is empty: the libraries are removed at once
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
    static Path unpacked(Map<String, String> renamed) throws IOException {
        Path folder = Files.createTempDirectory("libdist-test");
        for (String name : List.of("libdist.so.1", "libdist_java.so")) {
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
        for (String name : List.of("libdist.so.1", "libdist_java.so")) {
            Files.deleteIfExists(folder.resolve(name));
        }
        Files.delete(folder);
    }

    private static void override() throws IOException, InterruptedException {
        Path folder = unpacked(Map.of());
        try {
            says(run(List.of("-Ddist.native=" + folder, "-Djava.io.tmpdir=/nonexistent")), "version 200");
        } finally {
            remove(folder);
        }
    }

    private static void listsWhatWasTried() throws IOException, InterruptedException {
        says(run(List.of("-Ddist.native=/nonexistent")), "UnsatisfiedLinkError",
                "/nonexistent/libdist_java.so: not there", "-Ddist.native=DIR");
        String jars = "the jar's " + FOLDER.substring(0, FOLDER.length() - 1) + ", written to ";
        for (String folder : List.of("/nonexistent", "/sys", "/dev/null")) { // nobody can write there, not even root
            says(run(List.of("-Djava.io.tmpdir=" + folder, "-Djava.library.path=/neither")),
                    "UnsatisfiedLinkError: libdist cannot load its native libraries from the folder " + folder
                            + " (java.io.tmpdir)",
                    jars + folder, "java.library.path (/neither)", "Set -Djava.io.tmpdir=DIR to a folder",
                    "unzip native/linux-x86_64-glibc from the jar", "set -Ddist.native=DIR");
        }
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

    private static void withoutLibraries() throws IOException, InterruptedException {
        Map<String, String> names = Map.of("libtbb.so.12", "libtbb.so.xx", "libhwloc.so.15", "libhwloc.so.xx");
        for (Map.Entry<String, String> name : names.entrySet()) {
            Path folder = unpacked(Map.of(name.getKey(), name.getValue()));
            try {
                String output = run(List.of("-Ddist.native=" + folder));
                if (output.contains("version")) {
                    check(name.getKey().startsWith("libhwloc"), output); // libdist may have been built without
                    continue;
                }
                says(output, "this machine has no " + name.getValue(),
                        "Debian, Ubuntu: apt install libtbb12 libhwloc15 libisal2");
            } finally {
                remove(folder);
            }
        }
    }

    private static void everyUseSays() throws IOException, InterruptedException {
        for (String first : List.of("strategy", "logging", "tensor", "name", "topology")) {
            String output = run(List.of("-Ddist.native=/nonexistent"), "uses", first);
            String[] both = output.split("-- then\n");
            equal(2, both.length);
            check(both[0].startsWith("java.lang.UnsatisfiedLinkError: -Ddist.native names a folder"), output);
            check(both[1].contains("UnsatisfiedLinkError: -Ddist.native names a folder"), output);
        }
    }

    /** Uses the package for the first time in one of several ways, and then in another. */
    private static void uses(String first) {
        Map<String, Tap.Test> ways = Map.of("strategy", () -> Strategy.create(2), "logging",
                () -> Strategy.create(StrategyOptions.DEFAULT.log((level, line) -> {})), "tensor",
                () -> Tensors.scalar(1f), "name", () -> ReduceOp.fromName("SUM"), "topology",
                Topology::fromHost, "then", Dist::version);
        for (String way : List.of(first, "then")) {
            try {
                ways.get(way).run();
            } catch (Throwable t) {
                System.out.println(t);
                if (t.getCause() != null) {
                    System.out.println(t.getCause());
                }
            }
            System.out.print(way.equals(first) ? "-- then\n" : "");
        }
    }

    /** The classes and the libraries of all jars in one, without their manifests, as shading makes it. */
    private static void inFatJar() throws Exception {
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().put(Attributes.Name.MAIN_CLASS, LoaderTest.class.getName());
        Path fat = Files.createTempFile("libdist-test", ".jar");
        try {
            try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(fat), manifest)) {
                Set<String> names = new HashSet<>();
                for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
                    Jvm.open(entry, root -> copy(root, names, out));
                }
            }
            equal("version " + Dist.version() + "\n", Jvm.java(List.of("-jar", fat.toString())));
            equal("grpc " + Dist.hasFeature("grpc") + ", gloo " + Dist.hasFeature("gloo") + "\n",
                    Jvm.java(List.of("-jar", fat.toString(), "features")));
        } finally {
            Files.delete(fat);
        }
    }

    private static void copy(Path root, Set<String> names, JarOutputStream out) throws IOException {
        try (Stream<Path> files = Files.walk(root)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                String name = root.relativize(file).toString();
                if (!name.startsWith("META-INF/") && !name.equals("module-info.class") && names.add(name)) {
                    out.putNextEntry(new JarEntry(name));
                    Files.copy(file, out);
                }
            }
        }
    }

    private static void asModule() throws IOException, InterruptedException {
        Path folder = Files.createTempDirectory("libdist-test");
        Path program = Files.createDirectories(folder.resolve("app")).resolve("Main.java");
        Path module = folder.resolve("module-info.java");
        try {
            Files.writeString(module, "module app { requires org.libdist; }\n");
            Files.writeString(program, String.join("\n", "package app;", "import org.libdist.*;",
                    "public class Main {", "    public static void main(String[] args) {",
                    "        try (Strategy strategy = Strategy.create(2)) {",
                    "            strategy.run(replica -> {",
                    "                Tensor one = Tensors.scalar(1f);",
                    "                replica.allReduce(ReduceOp.SUM, one);",
                    "                if (replica.id() == 0) {",
                    "                    System.out.println(\"sum \" + one.item()",
                    "                            + \" in \" + Main.class.getModule().getName()",
                    "                            + \" by \" + Strategy.class.getModule().getName());",
                    "                }", "            });", "        }", "    }", "}", ""));
            String jar = System.getProperty("java.class.path").split(File.pathSeparator)[0];
            int compiled = ToolProvider.getSystemJavaCompiler().run(null, null, null, "-p", jar, "-d",
                    folder.toString(), module.toString(), program.toString());
            check(compiled == 0);
            equal("sum 2.0 in app by org.libdist\n",
                    Jvm.java(List.of("-p", jar + File.pathSeparator + folder, "-m", "app/app.Main")));
        } finally {
            try (Stream<Path> files = Files.walk(folder)) {
                files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
            }
        }
    }
}
