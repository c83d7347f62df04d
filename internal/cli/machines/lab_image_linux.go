package machines

import (
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/installed"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
	"plimsoll/internal/targets/lab/guest"
	"plimsoll/unit"
)

// labImageCommand holds what is done with the images that machines of a lab boot.
func labImageCommand(con *console.Console) *cobra.Command {
	return console.Group("image", "Build and list the images that machines of a lab boot",
		labImageBuildCommand(con), labImageListCommand(con))
}

func cacheFlag(c *cobra.Command, cache *string) {
	dir, _ := guest.DefaultCache() // without a home there is no default, and Build asks for one
	c.Flags().StringVar(cache, "cache", "", "`folder` of packages and images (default: "+
		"plimsoll/guests in the user's cache)")
	c.PreRun = func(*cobra.Command, []string) {
		if *cache == "" {
			*cache = dir
		}
	}
}

func labImageBuildCommand(con *console.Console) *cobra.Command {
	var cache, agent string
	var packages []string
	c := &cobra.Command{
		Use:   "build [worker|debian|pod]",
		Short: "Build an image from Debian's packages, or find it in the cache",
		Long: `Build makes the image of a worker (a kernel with busybox, fio, SSH and plimsoll's agent in memory, up in
seconds) or of a debian (systemd, OpenSSH, Python, PostgreSQL, fio), or of pods of a Kubernetes (busybox, fio, the agent), as an archive
for ctr, podman and docker, by the name localhost/plimsoll/pod:1. What it lacks on this machine it names.
An image is found in the cache as long as its packages, the agent and the recipe are the same.`,
		Example: "  plimsoll lab image build\n  plimsoll lab image build debian --json\n" +
			"  plimsoll lab image build debian --packages default-jre-headless,unzip",
		Args:      console.Args(0, 1, "kind of image"),
		ValidArgs: []string{string(guest.Worker), string(guest.Debian), string(guest.Pod)},
		RunE: func(_ *cobra.Command, given []string) error {
			kind := guest.Worker
			if len(given) > 0 {
				kind = guest.Kind(given[0])
			}
			if agent == "" {
				var err error
				if agent, err = installed.Path("plimsoll-agent-linux-amd64"); err != nil {
					return exit.Errorf(exit.Failed, "", "lab image build: %w", err)
				}
			}
			ctx, stop := con.Interruptible()
			defer stop()
			image, err := guest.Build(ctx, guest.Config{Kind: kind, Cache: cache, Agent: agent, Packages: packages,
				Log: func(format string, args ...any) { visible.Fprintf(con.Notes(), format+"\n", args...) }})
			if err != nil {
				return exit.Errorf(exit.Failed, "", "lab image build: %w", err)
			}
			if con.JSON {
				return con.PrintJSON(image)
			}
			return printImages(con, []guest.Image{image})
		},
	}
	c.Flags().StringVar(&agent, "agent", "", "the agent for Linux on amd64 (default: beside plimsoll) `file`")
	c.Flags().StringSliceVar(&packages, "packages", nil, "`names` of Debian's packages that a debian has besides its own")
	cacheFlag(c, &cache)
	return c
}

func labImageListCommand(con *console.Console) *cobra.Command {
	var cache string
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the images in the cache",
		Example: "  plimsoll lab image list\n  plimsoll lab image list --json",
		Args:    console.Args(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			list, err := guest.List(cache)
			if err != nil {
				return exit.Errorf(exit.Failed, "", "lab image list: %w", err)
			}
			if con.JSON {
				return con.PrintJSON(append([]guest.Image{}, list...))
			}
			if len(list) == 0 {
				visible.Fprintf(con.Out, "no images in %s\n", cache)
				return nil
			}
			return printImages(con, list)
		},
	}
	cacheFlag(c, &cache)
	return c
}

func printImages(con *console.Console, list []guest.Image) error {
	t := terminal.Table{Head: []string{"KIND", "ID", "KERNEL", "INITRD", "ROOT", "MEMORY", "PACKAGES", "", "FOLDER"},
		Right: []bool{false, false, true, true, true, true, true}}
	for _, i := range list {
		size := func(path string) string {
			if path == "" {
				return "-"
			}
			return unit.Bytes(i.Files[filepath.Base(path)].Bytes).String()
		}
		how := "new"
		if i.Cached {
			how = "cached"
		}
		t.Add(string(i.Kind), i.ID, size(i.Kernel), size(i.Initrd), size(i.Root), unit.Bytes(i.MemoryBytes).String(),
			strconv.Itoa(len(i.Packages)), how, i.Dir)
	}
	return t.Write(con.Out)
}
