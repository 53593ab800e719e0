<?php
// Searches a wiki's texts and titles for each term given; prints the titles found, as JSON.
require_once getenv( 'MW_INSTALL_PATH' ) . '/maintenance/Maintenance.php';

class Search extends Maintenance {
	private const RESULTS_MAX = 500;

	public function __construct() {
		parent::__construct();
		$this->addArg( 'terms', 'A JSON list of terms' );
	}

	public function execute() {
		$found = [];
		foreach ( json_decode( $this->getArg( 0 ) ) as $term ) {
			foreach ( [ 'searchText', 'searchTitle' ] as $method ) {
				$engine = MediaWiki\MediaWikiServices::getInstance()->newSearchEngine();
				$engine->setLimitOffset( self::RESULTS_MAX );
				$results = $engine->$method( $term );
				if ( $results instanceof Status ) {
					$results = $results->getValue();
				}
				$titles = [];
				foreach ( $results ?? [] as $result ) {
					$titles[] = $result->getTitle()->getPrefixedText();
				}
				$found["$method $term"] = $titles;
			}
		}
		echo json_encode( $found ), "\n";
	}
}

$maintClass = Search::class;
require_once RUN_MAINTENANCE_IF_MAIN;
