package loads

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/contract/target"
	"plimsoll/result"
	"plimsoll/unit"
)

// DefaultPatience is how long a job may stand still, and how long it may go on beyond its own time.
const DefaultPatience = time.Minute

// standing holds what is known of how a job comes on, for those that look after it.
type standing struct {
	begun time.Time // its command
	looks time.Time // the last look at a job of unknown length
	since time.Time // from then on it has stood still; zero when it does not
	did   uint64    // operations it had reported then
}

// mind has a job looked after from now on: its command runs.
func (l *Set) mind(s *Start, j *job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j.standing = standing{begun: l.Clock.Now()}
	l.begun[j] = s
}

// Mind ends the jobs that would never end by themselves, whether or not a step waits for them, and says so first: those
// that go on beyond their own time for longer than Patience, and those of unknown length that report nothing new for as
// long while processes of theirs stand, stopped or hanging in the kernel. They have failed; what they have reported
// counts. It does not wait until they are gone, and is to be called once in a while, by one goroutine at a time.
func (l *Set) Mind() {
	now := l.Clock.Now()
	for _, o := range l.overdue(now) {
		words := ""
		if names := stands(o.j); len(names) > 0 {
			words = ": " + strings.Join(names, ", ")
		}
		o.why += words
		l.mu.Lock()
		_, runs := l.begun[o.j]
		if runs {
			o.j.overdue = fmt.Sprintf("workload %q on %s: %s; what it reported until it was ended counts, and --patience "+
				"says how long is waited", o.s.name, o.j.vm.Name, o.why)
			delete(l.begun, o.j)
		}
		l.mu.Unlock()
		if !runs {
			continue // it has ended meanwhile
		}
		l.Record(result.Event{Kind: result.KindWarning,
			Text: fmt.Sprintf("workload %q on %s: %s; it is ended", o.s.name, o.j.vm.Name, o.why)})
		o.j.cancel()
	}
}

// late is a job that is to be ended.
type late struct {
	s   *Start
	j   *job
	why string
}

// overdue are the jobs to be ended now, in order of their names.
func (l *Set) overdue(now time.Time) (list []late) {
	patience := l.Patience
	var look []late
	l.mu.Lock()
	for j, s := range l.begun {
		switch own := j.launch.Job.Limit; {
		case own > 0 && now.Sub(j.standing.begun) >= own+patience:
			list = append(list, late{s, j, fmt.Sprintf("%s has not ended %s after its own time of %s", j.launch.Engine,
				unit.Duration(patience), unit.Duration(own))})
		case own <= 0 && now.Sub(j.standing.looks) >= min(patience/4, 5*time.Second):
			j.standing.looks = now
			look = append(look, late{s: s, j: j})
		}
	}
	l.mu.Unlock()
	for _, o := range look { // only those that look come here, so nobody else changes how a job stands
		at := &o.j.standing
		switch did := o.j.did.Load(); {
		case did != at.did || len(stands(o.j)) == 0:
			at.did, at.since = did, time.Time{}
		case at.since.IsZero():
			at.since = now
		case now.Sub(at.since) >= patience:
			o.why = fmt.Sprintf("%s stands still, for %s now", o.j.launch.Engine,
				unit.Duration(now.Sub(at.since).Round(time.Second)))
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b late) int {
		return strings.Compare(a.s.name+" "+a.j.vm.Name, b.s.name+" "+b.j.vm.Name)
	})
	return list
}

// stands names what stands of a job.
func stands(j *job) []string {
	teller, ok := j.host.(target.StandTeller)
	if !ok {
		return nil
	}
	names := teller.Stands(j.launch.Job.Command.Label)
	if len(names) > mostNamed {
		names = append(names[:mostNamed:mostNamed], fmt.Sprintf("and %d more", len(names)-mostNamed))
	}
	return names
}
