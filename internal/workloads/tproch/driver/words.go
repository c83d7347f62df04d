package tproch

import "strings"

// The words that columns are made of, and how often each is drawn, as the TPC-H specification lists them in its clauses
// 4.2.2.13 and 4.2.3 (the weights of nations say which region the nation is of, cumulatively).
var (
	regionNames = strings.Split("AFRICA,AMERICA,ASIA,EUROPE,MIDDLE EAST", ",")
	nationNames = strings.Split("ALGERIA,ARGENTINA,BRAZIL,CANADA,EGYPT,ETHIOPIA,FRANCE,GERMANY,INDIA,INDONESIA,IRAN,"+
		"IRAQ,JAPAN,JORDAN,KENYA,MOROCCO,MOZAMBIQUE,PERU,CHINA,ROMANIA,SAUDI ARABIA,VIETNAM,RUSSIA,UNITED KINGDOM,"+
		"UNITED STATES", ",")
	nationRegions = [25]byte{0, 1, 1, 1, 4, 0, 3, 3, 2, 2, 4, 4, 2, 4, 0, 0, 0, 1, 2, 3, 4, 2, 3, 3, 1}
	segments      = strings.Split("AUTOMOBILE,BUILDING,FURNITURE,HOUSEHOLD,MACHINERY", ",")
	priorities    = strings.Split("1-URGENT,2-HIGH,3-MEDIUM,4-NOT SPECIFIED,5-LOW", ",")
	instructions  = strings.Split("DELIVER IN PERSON,COLLECT COD,TAKE BACK RETURN,NONE", ",")
	modes         = strings.Split("REG AIR,AIR,RAIL,TRUCK,MAIL,FOB,SHIP", ",")
	containers    = products("SM,LG,MED,JUMBO,WRAP", "CASE,BOX,BAG,JAR,PACK,PKG,CAN,DRUM")
	coatings      = products("STANDARD,SMALL,MEDIUM,LARGE,ECONOMY,PROMO", "ANODIZED,BURNISHED,PLATED,POLISHED,BRUSHED")
	metals        = strings.Split("TIN,NICKEL,BRASS,STEEL,COPPER", ",")
	partTypes     = products(strings.Join(coatings, ","), strings.Join(metals, ","))
	colors        = strings.Split("almond,antique,aquamarine,azure,beige,bisque,black,blanched,blue,blush,brown,burlywood,"+
		"burnished,chartreuse,chiffon,chocolate,coral,cornflower,cornsilk,cream,cyan,dark,deep,dim,dodger,drab,firebrick,"+
		"floral,forest,frosted,gainsboro,ghost,goldenrod,green,grey,honeydew,hot,indian,ivory,khaki,lace,lavender,lawn,"+
		"lemon,light,lime,linen,magenta,maroon,medium,metallic,midnight,mint,misty,moccasin,navajo,navy,olive,orange,"+
		"orchid,pale,papaya,peach,peru,pink,plum,powder,puff,purple,red,rose,rosy,royal,saddle,salmon,sandy,seashell,"+
		"sienna,sky,slate,smoke,snow,spring,steel,tan,thistle,tomato,turquoise,violet,wheat,white,yellow", ",")
)

// products are all pairs of words, the first ones slowest.
func products(firsts, seconds string) (all []string) {
	for first := range strings.SplitSeq(firsts, ",") {
		for second := range strings.SplitSeq(seconds, ",") {
			all = append(all, first+" "+second)
		}
	}
	return all
}

// Words of comments with their weights, "40 packages requests" for words of weight 40.
const (
	nouns = "40 packages,requests,accounts,deposits/20 foxes,ideas,theodolites,pinto beans,instructions/10 dependencies," +
		"excuses,platelets,asymptotes/5 courts,dolphins/1 multipliers,sauternes,warthogs,frets,dinos,attainments,somas," +
		"Tiresias,patterns,forges,braids,frays,warhorses,dugouts,notornis,epitaphs,pearls,tithes,waters,orbits,gifts," +
		"sheaves,depths,sentiments,decoys,realms,pains,grouches,escapades,hockey players"
	verbs = "20 sleep,wake,are,cajole,haggle/10 nag,use,boost/5 affix,detect,integrate/1 maintain,nod,was,lose,sublate," +
		"solve,thrash,promise,engage,hinder,print,x-ray,breach,eat,grow,impress,mold,poach,serve,run,dazzle,snooze,doze," +
		"unwind,kindle,play,hang,believe,doubt"
	adverbs = "1 sometimes,always,never/50 furiously,slyly,carefully/40 blithely/30 quickly/20 fluffily/1 slowly,quietly," +
		"ruthlessly,thinly,closely,doggedly,daringly,bravely,stealthily,permanently,enticingly,idly,busily,regularly," +
		"finally,ironically,evenly,boldly,silently"
	prepositions = "50 about,above,according to,across,after/40 against,along/30 alongside of,among/20 around/10 at/" +
		"1 atop,before,behind,beneath,beside,besides,between,beyond,by,despite,during,except,for,from,in place of,inside," +
		"instead of,into,near,of,on,outside,over,past,since,through,throughout,to,toward,under,until,up,upon,whithout," +
		"with,within"
	auxiliaries = "1 do,may,might,shall,will,would,can,could,should,ought to,must,will have to,shall have to," +
		"could have to,should have to,must have to,need to,try to"
	adjectives = "20 special,pending,unusual,express/1 furious,sly,careful,blithe,quick,fluffy,slow,quiet,ruthless,thin," +
		"close,dogged,daring,brave,stealthy,permanent,enticing,idle,busy/50 regular/40 final,ironic/30 even/20 bold/" +
		"10 silent"
	terminators = "50 ./1 ;,:,?,!,--"
	sentences   = "3 NVT,NVPT,NVNT/1 NPVNT,NPVPT" // T ends, P is a preposition, "the" and a noun phrase
	nounPhrases = "10 N/20 JN/10 CJN/50 DJN"      // C is an adjective with a comma
	verbPhrases = "30 V/1 XV/40 VD/1 XVD"
)
