// SPDX-License-Identifier: Apache-2.0

package org.libdist.internal;

import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.WeakReference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.zip.CRC32C;

/**
 * Loads the native libraries: only from the folder that -Ddist.native=DIR names, if it is set; otherwise from
 * the jar, through a temporary folder; otherwise from -Djava.library.path or the system. An error states what
 * was tried and why it failed.
 */
public final class NativeLoader {
    /** The program dist-info, which is beside the libraries, too. */
    public static final String PROGRAM = "dist-info";
    private static final String OVERRIDE = "dist.native";
    private static final String TEMPORARY = "java.io.tmpdir";
    private static final String LOADED_BY = "org.libdist.loader";
    private static final String KEPT = "org.libdist.native";
    private static final String USED = "org.libdist.binding:";
    private static final String BINDING = "libdist_java.so";
    private static final String CORE = "libdist.so.1";
    /** In the order in which they depend on each other. Libraries of other projects need not be in our folder. */
    private static final List<String> LIBRARIES =
            List.of("libtbb.so.12", "libhwloc.so.15", "libisal.so.2", CORE, BINDING);
    /** The libraries that the binding needs. */
    private static final List<String> BELOW = LIBRARIES.subList(0, LIBRARIES.indexOf(BINDING));
    /** Libraries that libdist loads from its own folder if several processes are used. They need not be there. */
    private static final List<String> MODULES = List.of("libdist-grpc.so", "libdist-gloo.so");
    /**
     * Lists the other libraries in the jar's folder: "binding" those that the binding needs, "modules" those that only
     * the modules need. They find each other there. A jar whose libraries come from the system does not have it.
     */
    private static final String BUNDLED = "bundled.properties";
    /** Libraries of other projects that libdist needs, by the beginning of their file names. */
    private static final Map<String, String> NEEDED = Map.of(
            "libtbb.so", "oneTBB", "libhwloc.so", "hwloc", "libisal.so", "ISA-L", "libstdc++.so", "GCC's");
    private static final String PACKAGES = "Debian, Ubuntu: apt install libtbb12 libhwloc15 libisal2;"
            + " others: tbb, hwloc";
    private static final String NOT_EXECUTABLE = " (the file system is probably mounted with noexec)";
    private static final Pattern MISSING =
            Pattern.compile("(lib[^\\s:/]+\\.so[.\\w]*): cannot open shared object file");

    private final List<String> tried = new ArrayList<>();
    private boolean folderFails; // the jar has the libraries, and the temporary folder is not suitable

    private NativeLoader() {}

    static void load() {
        awaitOtherLoaders();
        checkOtherLoaders();
        new NativeLoader().find();
    }

    /**
     * One JVM loads a native library once: which class loader was first stands in a place that all of them
     * share.
     */
    private static void checkOtherLoaders() {
        ClassLoader mine = NativeLoader.class.getClassLoader();
        Properties shared = System.getProperties();
        synchronized (shared) {
            Object first = shared.get(LOADED_BY);
            ClassLoader other =
                    first instanceof WeakReference ? (ClassLoader) ((WeakReference<?>) first).get() : null;
            if (other != null && other != mine) {
                throw new UnsatisfiedLinkError(
                        "libdist is loaded already, by another class loader of this JVM (" + other
                        + "; this one is " + mine
                        + "). A JVM loads native libraries once: put libdist's jar where both"
                        + " find the same classes, in a parent of the two (of web applications: the server's lib"
                        + " folder), and in neither of them");
            }
            shared.put(LOADED_BY, new WeakReference<>(mine));
        }
    }

    /** Lets the JVM collect an unused class loader, and so unload its native libraries. */
    private static void awaitOtherLoaders() {
        for (int round = 0; round < 20; round++) {
            Object first = System.getProperties().get(LOADED_BY);
            if (!(first instanceof WeakReference) || ((WeakReference<?>) first).get() == null) {
                return;
            }
            System.gc();
            try {
                Thread.sleep(10);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return;
            }
        }
    }

    private void find() {
        String override = System.getProperty(OVERRIDE);
        if (override != null) {
            if (!loadOverride(Path.of(override).toAbsolutePath())) {
                throw failure("-D" + OVERRIDE + " names a folder that does not do");
            }
            return;
        }
        if (!loadJar() && !loadByPath()) {
            throw failure(folderFails ? "libdist cannot load its native libraries from the folder "
                                    + System.getProperty(TEMPORARY) + " (" + TEMPORARY + ")"
                                      : "libdist's native libraries were not found");
        }
    }

    private UnsatisfiedLinkError failure(String what) {
        String advice = folderFails
                ? "Set -D" + TEMPORARY + "=DIR to a folder in which files can be written and executed. Or unzip " + folder()
                        + " from the jar into a folder, and set -D" + OVERRIDE + "=DIR to that folder"
                : "-D" + OVERRIDE + "=DIR names a folder with " + BINDING
                        + " and libdist.so.1; for this machine the jar would have them in " + folder();
        return new UnsatisfiedLinkError(what + ". Tried:\n  " + String.join("\n  ", tried) + "\n" + advice);
    }

    /** Where the jar has this machine's: "native/linux-x86_64-glibc". */
    private static String folder() {
        String os = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String arch = System.getProperty("os.arch");
        String machine = arch.equals("amd64") ? "x86_64" : arch;
        return "native/"
                + (os.equals("linux") ? "linux-" + machine + "-" + libc()
                                      : os.replace(' ', '_') + "-" + machine);
    }

    private static String libc() {
        try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
            return maps.anyMatch(line -> line.contains("musl")) ? "musl" : "glibc";
        } catch (IOException | RuntimeException e) {
            return "glibc";
        }
    }

    private boolean loadOverride(Path folder) {
        try {
            return loadFolder(folder);
        } catch (IOException e) {
            tried.add(folder + ": " + e);
            return false;
        }
    }

    /**
     * The binding of a folder, and first the libraries beside it that it needs. If an earlier class loader has
     * loaded those, they are in the process, and the binding finds them by their names.
     */
    private boolean loadFolder(Path folder) throws IOException {
        Path binding = folder.resolve(BINDING);
        if (!Files.exists(binding)) {
            tried.add(binding + ": not there");
            return false;
        }
        String core = version(folder.resolve(CORE));
        Object kept = System.getProperties().get(KEPT);
        if (kept != null && !kept.equals(core)) {
            throw new UnsatisfiedLinkError("this JVM has loaded another version of libdist before, for a class loader"
                    + " that has ended. Native libraries stay in the process: restart the JVM to change the version");
        }
        for (String name : BELOW) {
            if (kept == null && Files.exists(folder.resolve(name)) && !loadFile(folder.resolve(name))) {
                return false;
            }
        }
        boolean loaded = isUsed(binding.toString()) ? loadCopy(binding) : loadFile(binding);
        if (loaded) {
            System.getProperties().put(KEPT, core);
        }
        return loaded;
    }

    private boolean loadFile(Path library) {
        try {
            System.load(library.toString());
            return true;
        } catch (UnsatisfiedLinkError e) {
            tried.add(library + ": " + explain(e).replace(library + ": ", ""));
            return false;
        }
    }

    private boolean loadByPath() {
        if (isUsed("")) {
            tried.add("java.library.path: its " + BINDING + " was loaded for a class loader that has ended");
            return false;
        }
        try {
            System.loadLibrary("dist_java");
            return true;
        } catch (UnsatisfiedLinkError e) {
            tried.add("java.library.path (" + System.getProperty("java.library.path") + "): " + explain(e));
            return false;
        }
    }

    /**
     * A library cannot be loaded out of a jar, so it is written to a temporary folder and deleted when it is
     * loaded. The modules stay until the JVM ends, because libdist loads them from there when it needs them.
     */
    private boolean loadJar() {
        String folder = folder();
        if (NativeLoader.class.getResource("/" + folder + "/" + BINDING) == null) {
            tried.add("the jar's " + folder + ": not there");
            return false;
        }
        Path temporary = null;
        List<String> libraries = List.of();
        try {
            libraries = withBundled(LIBRARIES, "binding");
            temporary = Files.createTempDirectory("libdist-").toAbsolutePath();
            extract(libraries, temporary);
            boolean first = !System.getProperties().containsKey(KEPT);
            boolean loaded = loadFolder(temporary);
            folderFails = !loaded && tried.stream().anyMatch(each -> each.endsWith(NOT_EXECUTABLE));
            if (loaded && first) {
                keepModules(temporary);
            }
            return loaded;
        } catch (IOException e) {
            folderFails = true;
            tried.add("the jar's " + folder + ", written to " + System.getProperty(TEMPORARY) + ": " + e);
            return false;
        } finally {
            remove(temporary, libraries);
        }
    }

    /** Writes the modules and what they need, which the JVM deletes at its end. They are deleted before the folder. */
    private static void keepModules(Path temporary) throws IOException {
        temporary.toFile().deleteOnExit();
        for (Path module : extract(withBundled(MODULES, "modules"), temporary)) {
            module.toFile().deleteOnExit();
        }
    }

    /** Writes those of the files that the jar has for this machine, and returns their paths. */
    private static List<Path> extract(List<String> names, Path to) throws IOException {
        List<Path> written = new ArrayList<>();
        for (String name : names) {
            try (InputStream in = NativeLoader.class.getResourceAsStream("/" + folder() + "/" + name)) {
                if (in != null) {
                    Files.copy(in, to.resolve(name));
                    written.add(to.resolve(name));
                }
            }
        }
        return written;
    }

    /** Writes the program and all libraries of the jar. Returns their paths, of which the program's is the first. */
    public static List<Path> extractProgram(Path to) throws IOException {
        List<String> names = new ArrayList<>(List.of(PROGRAM));
        names.addAll(withBundled(LIBRARIES, "binding"));
        names.addAll(withBundled(MODULES, "modules"));
        return extract(names, to);
    }

    /** These libraries, and those that are listed in the jar's folder for them. */
    private static List<String> withBundled(List<String> libraries, String key) throws IOException {
        Properties bundled = new Properties();
        try (InputStream in = NativeLoader.class.getResourceAsStream("/" + folder() + "/" + BUNDLED)) {
            if (in != null) {
                bundled.load(in);
            }
        }
        return Stream.concat(libraries.stream(), Pattern.compile(" ").splitAsStream(bundled.getProperty(key, "")))
                .filter(name -> !name.isEmpty())
                .toList();
    }

    /** Identifies this libdist. A loaded library stays in the process, and must not be mixed with another version. */
    private static String version(Path library) throws IOException {
        CRC32C sum = new CRC32C();
        sum.update(Files.exists(library) ? Files.readAllBytes(library) : new byte[0]);
        return "CRC " + sum.getValue();
    }

    /** Whether an earlier class loader has loaded a binding, whose statics stay in the process. */
    private static boolean isUsed(String binding) {
        return System.getProperties().putIfAbsent(USED + binding, "") != null;
    }

    /** Another copy of a binding, with statics of its own. */
    private boolean loadCopy(Path library) {
        Path temporary = null;
        try {
            temporary = Files.createTempDirectory("libdist-").toAbsolutePath();
            return loadFile(Files.copy(library, temporary.resolve(BINDING)));
        } catch (IOException e) {
            tried.add("a copy of " + library + ", in " + System.getProperty(TEMPORARY) + ": " + e);
            return false;
        } finally {
            remove(temporary, List.of(BINDING));
        }
    }

    /** Deletes libraries, and then their folder unless it has modules. */
    private static void remove(Path folder, List<String> libraries) {
        if (folder == null) {
            return;
        }
        try {
            for (String name : libraries) {
                Files.deleteIfExists(folder.resolve(name));
            }
            Files.deleteIfExists(folder);
        } catch (IOException e) {
            // what is left in a temporary folder does no harm
        }
    }

    /** The loader's words, and what to do about them. */
    private static String explain(UnsatisfiedLinkError error) {
        String words = String.valueOf(error.getMessage());
        Matcher missing = MISSING.matcher(words);
        if (words.contains("already loaded in another classloader")) {
            return words
                    + ". A JVM loads a native library once: put libdist's jar where both find the same"
                    + " classes";
        }
        if (words.contains("failed to map segment") || words.contains("Operation not permitted")) {
            return words + NOT_EXECUTABLE;
        }
        if (!missing.find()) {
            return words;
        }
        String library = missing.group(1);
        String advice = NEEDED.entrySet()
                                .stream()
                                .filter(needed -> library.startsWith(needed.getKey()))
                                .map(needed -> " (" + needed.getValue()
                                                + ", which libdist needs): install it (" + PACKAGES + ")")
                                .findFirst()
                                .orElse(": put it beside libdist's, or where the system looks"
                                        + " (LD_LIBRARY_PATH)");
        return "this machine has no " + library + advice + " [" + words + "]";
    }
}
