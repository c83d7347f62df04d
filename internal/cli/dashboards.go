package cli

import (
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"plimsoll/dashboards"
	"plimsoll/internal/cli/console"
	"plimsoll/internal/kit/exit"
	"plimsoll/internal/kit/outfile"
	"plimsoll/internal/kit/visible"
	"plimsoll/internal/report/terminal"
)

func dashboardsCommand(con *console.Console) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List the Grafana dashboards that come with the program", Args: console.Args(0, 0,
			"argument"),
		Example: "  plimsoll dashboards list --json",
		RunE:    func(*cobra.Command, []string) error { return listDashboards(con) },
	}
	write := &cobra.Command{
		Use: "write FOLDER", Short: "Write the Grafana dashboards into a folder, a file of JSON each",
		Long: `Write puts a file NAME.json for each dashboard into FOLDER, which is made when it is not there; files of these
names are replaced, others stay. Import them in Grafana by hand, or let Grafana read the folder by itself (provisioning).
Data source is plimsoll serve, or a Prometheus that scrapes the exporters.`,
		Args: console.Args(1, 1, "folder"), Example: "  plimsoll dashboards write /var/lib/grafana/dashboards/plimsoll",
		RunE: func(cmd *cobra.Command, given []string) error {
			return writeDashboards(con, console.Phase(cmd), given[0])
		},
	}
	return console.Group("dashboards", "List and write the Grafana dashboards that come with the program", list, write)
}

func listDashboards(con *console.Console) error {
	type listed struct {
		Name  string `json:"name"`
		Title string `json:"title"`
		Help  string `json:"description"`
	}
	var rows []listed
	t := terminal.Table{Head: []string{"DASHBOARD", "TITLE", "SHOWS"}}
	for _, d := range dashboards.All() {
		rows = append(rows, listed{d.Name, d.Title, d.Help})
		t.Add(d.Name, d.Title, d.Help)
	}
	if con.JSON {
		return con.PrintJSON(rows)
	}
	return t.Write(con.Out)
}

func writeDashboards(con *console.Console, phase, folder string) error {
	err := os.MkdirAll(folder, 0o777)
	for _, d := range dashboards.All() {
		var text []byte
		if err == nil {
			text, err = d.JSON()
		}
		if err == nil {
			err = outfile.Write(filepath.Join(folder, d.Name+".json"), func(w io.Writer) error {
				_, err := w.Write(text)
				return err
			})
		}
	}
	if err != nil {
		return exit.Errorf(exit.Failed, "", "%s%w", phase, err)
	}
	visible.Fprintf(con.Notes(), "dashboards: %d in %s\n", len(dashboards.All()), folder)
	return nil
}
