//go:build linux

package guest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// system lists packages beside those that every Debian has. Everything else comes as their dependencies.
var system = []string{"apt", "systemd-sysv", "udev", "dbus", "libpam-systemd", "kmod", "netbase", "iproute2", "procps",
	"sudo", "openssh-server", "openssh-sftp-server", "ca-certificates", "python3", "python3-apt", "python3-psycopg2",
	"postgresql", "postgresql-contrib", "fio", "e2fsprogs", "xfsprogs", "util-linux", "less"}

// Before anything is installed: no database is made and no daemon begun, for all guests would have the same.
const before = `set -e
mkdir -p "$1/etc/postgresql-common" "$1/usr/sbin" "$1/etc/apt/apt.conf.d"
echo 'create_main_cluster = false' >"$1/etc/postgresql-common/createcluster.conf"
printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
chmod 755 "$1/usr/sbin/policy-rc.d"
`

// After: modules of the kernel, and nothing that guests must not share.
const after = `set -e
dpkg-deb --fsys-tarfile "$KERNEL" | tar -x -C "$1" ./lib/modules
chroot "$1" depmod "$VERSION"
rm -f "$1/usr/sbin/policy-rc.d" "$1"/etc/ssh/ssh_host_* "$1/var/lib/dbus/machine-id" "$1/etc/hostname"
rm -f "$1/etc/ssl/private/ssl-cert-snakeoil.key" "$1/etc/ssl/certs/ssl-cert-snakeoil.pem" \
  "$1/var/lib/systemd/random-seed"
: >"$1/etc/machine-id"
rm -rf "$1/var/cache/apt" "$1/var/lib/apt/lists" "$1/var/log" \
  "$1/usr/share/doc" "$1/usr/share/man" "$1/usr/share/locale"
mkdir -p "$1/var/cache/apt/archives/partial" "$1/var/lib/apt/lists/partial" "$1/var/log/postgresql"
chroot "$1" chown root:postgres /var/log/postgresql
chmod 1775 "$1/var/log/postgresql"
: >"$1/etc/apt/sources.list"
echo '/dev/vda / ext4 noatime 0 1' >"$1/etc/fstab"
mkdir -p "$1/root/.ssh"
chmod 700 "$1/root/.ssh"
chroot "$1" systemctl enable systemd-networkd ssh
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_reap.service e2scrub_all.timer \
  fstrim.timer systemd-networkd-wait-online.service getty@tty1.service
do ln -sf /dev/null "$1/etc/systemd/system/$unit"; done
`

// Of the root file system. It is sparse; a machine may put a larger disk in its place.
const rootBytes = 4 << 30

// debian builds a Debian: its root file system, and an initramfs that gives it an identity and begins it.
func (b *builder) debian(ctx context.Context) (Image, error) {
	base, err := b.initrd(ctx)
	if err != nil {
		return Image{}, err
	}
	wanted := append(slices.Clone(system), b.Packages...)
	packages, err := closure(ctx, append([]string{"?essential", "?priority(required)"}, wanted...)...)
	if err != nil {
		return Image{}, err
	}
	rootKey := hashOf(recipe, fmt.Sprint(base.kernel, packages), before, after, fmt.Sprint(rootBytes))
	i := Image{Append: console + " root=/dev/vda rw", MemoryBytes: 512 << 20, Root: "root.raw", RootFormat: "raw",
		Packages: append(base.names(), names(packages)...)}
	slices.Sort(i.Packages)
	i.Packages = slices.Compact(i.Packages)
	return b.image(hashOf(base.key, rootKey), i, func(dir string) error {
		root, err := b.stage("root-"+rootKey,
			func(dir string) error { return b.root(ctx, dir, base, packages, wanted) })
		if err != nil {
			return err
		}
		if err := os.Link(filepath.Join(root, "root.raw"), filepath.Join(dir, "root.raw")); err != nil {
			return err
		}
		tree, _, err := base.begin(ctx, dir)
		if err != nil {
			return err
		}
		tree["debian"] = entry{mode: regular | 0o644}
		return tree.initrd(dir)
	})
}

// root builds a root file system of packages, and of these only; the wanted ones depend on the others.
func (b *builder) root(ctx context.Context, dir string, base *base, packages []part, wanted []string) error {
	from, err := b.fetch(ctx, append(slices.Clone(packages), base.kernel))
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp(b.cache, unfinished)
	if err != nil {
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // the next build removes what is left
	pool, tree := filepath.Join(work, "pool"), filepath.Join(work, "root")
	if err := os.Mkdir(pool, 0o755); err != nil {
		return err
	}
	for _, p := range packages {
		if err := os.Link(filepath.Join(from, p.Name), filepath.Join(pool, p.Name)); err != nil {
			return err
		}
	}
	index, err := command(ctx, pool, nil, "dpkg-scanpackages", "--multiversion", ".")
	if err != nil {
		return err
	}
	// mmdebstrap asks for what is essential in the suite, which only a Release file names.
	release := fmt.Sprintf("Suite: stable\nCodename: stable\nSHA256:\n %x %d Packages\n",
		sha256.Sum256(index), len(index))
	err = errors.Join(os.Chmod(work, 0o755), os.WriteFile(filepath.Join(pool, "Packages"), index, 0o644),
		os.WriteFile(filepath.Join(pool, "Release"), []byte(release), 0o644))
	if err != nil {
		return err
	}
	b.Log("installing %d packages into a root file system: minutes", len(packages))
	_, err = command(ctx, work, []string{"KERNEL=" + filepath.Join(from, base.kernel.Name), "VERSION=" + base.version},
		"mmdebstrap", "--mode=root", "--variant=required", "--aptopt=APT::Install-Recommends false",
		"--include="+strings.Join(wanted, ","), "--setup-hook="+before, "--customize-hook="+after, "stable", tree,
		"deb [trusted=yes] copy:"+pool+" ./")
	if err != nil {
		return err
	}
	if err := atEpoch(tree); err != nil {
		return err
	}
	b.Log("writing the root file system")
	return fileSystem(ctx, filepath.Join(dir, "root.raw"), "root", rootBytes, "-d", tree)
}

// fileSystem makes a file system in a sparse file, the same whenever it is made.
func fileSystem(ctx context.Context, file, label string, bytes int64, more ...string) error {
	args := append([]string{"-q", "-L", label, "-m", "0", "-U", "706c696d-736f-6c6c-8000-000000000001", "-E",
		"hash_seed=706c696d-736f-6c6c-8000-000000000002,lazy_itable_init=1"}, more...)
	_, err := command(ctx, filepath.Dir(file), []string{"E2FSPROGS_FAKE_TIME=1"}, "mkfs.ext4",
		append(args, file, fmt.Sprintf("%dk", bytes>>10))...)
	return err
}

// atEpoch sets back the times of files that were changed while the root was made.
func atEpoch(tree string) error {
	begun := unix.NsecToTimespec(0)
	return filepath.WalkDir(tree, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return unix.UtimesNanoAt(unix.AT_FDCWD, name, []unix.Timespec{begun, begun}, unix.AT_SYMLINK_NOFOLLOW)
	})
}
